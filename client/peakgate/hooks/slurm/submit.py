"""`peakgate sbatch`, `srun` and `salloc`: the real program with a verdict before it.

A job without a GPU, or without a word of training, is handed over at once; what judges the others is imported only for them. Whatever goes
wrong on the way is one line, and the job is submitted: only a verdict in mode enforce stops one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from peakgate.hooks.signs import may_train
from peakgate.hooks.slurm.command_line import (
    CommandLine,
    OwnOptionError,
    asks_for_gpus,
    options_around,
    read_command_line,
)
from peakgate.hooks.slurm.hand_over import hand_over, say

if TYPE_CHECKING:
    from peakgate.hooks.slurm.admitting import Decision

REFUSED_STATUS = 1
"""As sbatch itself when a job is not accepted, and as `peakgate predict` of a job that does not fit."""
USAGE_STATUS = 2
INTERRUPTED_STATUS = 130
HEAD_BYTES = 4 << 20
"""slurmctld takes no larger script (slurm.conf(5), max_script_size)."""
WRAPPED = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{}\n"
"""What sbatch makes of --wrap (sbatch.c)."""
SUBMITTER = "PEAKGATE_SUBMITTER"
"""The process that has judged the job, for a plugin inside the real program (cli_filter.lua), which has the same number."""
IN_A_JOB = "SLURM_JOB_ID"
ATTACHED_BEFORE = ("PEAKGATE_ATTACHED", "SLURM_PEAKGATE_ATTACHED")
INHERITED = ("PEAKGATE_JOB", "PEAKGATE_ATTACHED", "PEAKGATE_PREDICTION")


def run(program: str, words: Sequence[str]) -> int:
    """Judges and submits; returns only where nothing was submitted."""
    try:
        line = read_command_line(program, words)
    except OwnOptionError as error:
        say(f"peakgate: {error}")
        return USAGE_STATUS
    environment = dict(os.environ) if _is_step(program, os.environ) else _without_inherited(dict(os.environ))
    try:
        script, stdin = _script(line)
        decision = _decision(line, script, environment)
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    if decision is None:
        return 0 if "judge" in line.own else hand_over(program, line.words, environment, stdin)
    for text in decision.lines:
        say(text)
    if "judge" in line.own:
        sys.stdout.write(decision.comment)
        return REFUSED_STATUS if decision.is_refused else 0
    if decision.is_refused:
        return REFUSED_STATUS
    mark = {SUBMITTER: str(os.getpid())}
    return hand_over(program, decision.words, {**environment, **decision.environment, **mark}, stdin)


def _decision(line: CommandLine, script: str, environment: dict[str, str]) -> Decision | None:
    """None: there is nothing to say. What goes wrong in here is no reason to hold a job up."""
    if not _is_of_interest(line, script, environment):
        return None
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # not in the job's environment, which was copied before
    try:
        from peakgate.hooks.slurm.admitting import decide

        return decide(line, script, environment)
    except Exception as error:  # noqa: BLE001 - see the module: the job is submitted
        say(f"peakgate: not checked: {type(error).__name__}: {str(error)[:200]!r}")
        return None


def _is_of_interest(line: CommandLine, script: str, environment: dict[str, str]) -> bool:
    """Whether the job is a new one, asks for GPUs, and may train."""
    mode = line.own.get("mode") or environment.get("PEAKGATE_MODE")
    if mode == "off" or _is_step(line.program, environment):
        return False
    around = options_around(line, script, environment)
    if not any(asks_for_gpus(around | dict(component.options)) for component in line.components):
        return False
    stated = "peakgate:" in "".join(component.options.get("comment", "") for component in line.components)
    return stated or may_train(script if line.program == "sbatch" else " ".join(line.behind))


def _script(line: CommandLine) -> tuple[str, bytes | None]:
    """The text of a batch script, and what was read of the standard input for it, which the real program reads again."""
    if line.program != "sbatch":
        return "", None
    wrapped = next((component.options["wrap"] for component in line.components if "wrap" in component.options), None)
    if wrapped is not None:
        return WRAPPED.format(wrapped), None
    if not line.behind:
        asks_only = any(name in line.components[0].options for name in ("help", "usage", "version", "h", "V"))
        if asks_only or "judge" in line.own or sys.stdin is None:
            return "", None
        content = sys.stdin.buffer.read()
        return _text(content), content
    path = Path(line.behind[0])
    try:
        if not path.is_file():
            return "", None  # a pipe (`sbatch <(…)`) is read once, and that once is sbatch's own
        with path.open("rb") as file:
            return _text(file.read(HEAD_BYTES)), None
    except OSError:
        return "", None  # sbatch itself says what is wrong with it, or finds it in PATH


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _is_step(program: str, environment: Mapping[str, str]) -> bool:
    """Whether it runs a part of the job around it, whose prediction is then its own."""
    return program == "srun" and IN_A_JOB in environment


def _without_inherited(environment: dict[str, str]) -> dict[str, str]:
    """What a job hands down to those that it submits is of another job."""
    if IN_A_JOB in environment or any(name in environment for name in ATTACHED_BEFORE):
        for name in INHERITED:
            environment.pop(name, None)
            environment.pop(f"SLURM_{name}", None)
    return environment
