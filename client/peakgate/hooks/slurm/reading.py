"""The job of a submission as far as the controller can know it: the script or the command, read without opening a single file.

What a script names (configs, other scripts, checkpoints) lies in users' folders: a controller that opened it would hang with a file
system and read with rights that the user does not have. So a launch that names such a file is read in part only, and its verdict holds
nobody up; the submit host reads it whole, and attaches what it read.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace

from peakgate.client.source import LaunchText
from peakgate.hooks.signs import may_train
from peakgate.hooks.slurm.attached import SCRIPT_HEAD
from peakgate.hooks.slurm.submission import Submission
from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import NOT_READ
from peakgate.readers.read import UnreadableError, read_command
from peakgate.readers.reading import Reading
from peakgate.v1.document import DocumentError, parse_job
from peakgate.v1.training_job_pb2 import TrainingJob

SCRIPT = "job script"
FIRST_LINE = "#!/bin/sh\n"
MOST_WORDS = 200
"""So many words of a command the controller's hook sends (peakgate.lua)."""
NAMES_FILES = "it names files, which are not read on the controller: peakgate sbatch reads them"
CUT_OFF = "no training stands in the first 64 KiB of the script, and no more of it is looked at here"
UNSEEN = "job"
"""Stands for a command that no reader knows, or that is not seen."""
MODEL_PATHS = ("model.hf_config", "model.profile")
"""Fields that a launch may fill with the path of a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """`job`: None where there is no training to be judged, or, with `problem`, one that cannot be. `is_partial`: files are missing."""

    job: TrainingJob | None = None
    launch: LaunchText | None = None
    is_partial: bool = False
    problem: str = ""


def read_submission(submission: Submission, script: str, argv: tuple[str, ...], stated: str) -> Read:
    """Reads a script, else a command; `stated`: words of the job document in the comment, which stand for a command by themselves as
    well. One that is longer than what the hook sends is read in part. Never raises."""
    is_cut = len(script.encode("utf-8", "surrogateescape")) >= SCRIPT_HEAD or len(argv) > MOST_WORDS
    own = f"\n#PEAKGATE {stated}\n" if stated else ""
    texts = [script[:SCRIPT_HEAD] + own] if script else [f"{FIRST_LINE}{shlex.join(argv)}{own}"]
    texts += [f"{FIRST_LINE}{UNSEEN}{own}"] if stated else []
    for text in texts:
        if may_train(text) and (found := _read(submission, text)) is not None:
            return replace(found, is_partial=found.is_partial or is_cut)
    return Read(problem=CUT_OFF) if is_cut else Read()


def _read(submission: Submission, text: str) -> Read | None:
    files = GivenFiles({SCRIPT: text})
    words = ["sbatch", *request_flags(submission), SCRIPT]
    try:
        reading = read_command(words, files)
    except UnreadableError:
        return None
    return _parsed(reading, LaunchText(reading=reading, files=files, command=shlex.join(words)))


def _parsed(reading: Reading, launch: LaunchText) -> Read:
    document, is_partial = reading.document(), any(each.endswith(NOT_READ) for each in reading.warnings)
    for path in MODEL_PATHS:
        if isinstance(document.get(path), str):
            return Read(is_partial=True, launch=launch, problem=f"{path} names a file, which is not read on the controller")
    try:
        return Read(job=parse_job(document), launch=launch, is_partial=is_partial)
    except DocumentError as error:
        if is_partial:  # what is missing may stand there
            return Read(launch=launch, is_partial=True, problem=NAMES_FILES)
        return Read(launch=launch, is_partial=is_partial, problem=f"what the launch says is no job: {str(error)[:200]}")


def request_flags(submission: Submission) -> list[str]:
    """The request as options of sbatch, which win over the lines of the script; of a bound the least."""
    flags = [f"--nodes={submission.nodes.count}"] if submission.nodes.count > 1 or not submission.nodes.is_at_least else []
    if submission.tasks is not None:
        flags.append(f"--ntasks={submission.tasks}")
    if submission.tasks_per_node is not None:
        flags.append(f"--ntasks-per-node={submission.tasks_per_node}")
    if submission.gpus_per_node is not None:
        flags.append(f"--gres=gpu:{submission.gpus_per_node.count}")
    elif submission.gpu_count is not None:
        flags.append(f"--gpus={submission.gpu_count.count}")
    return flags
