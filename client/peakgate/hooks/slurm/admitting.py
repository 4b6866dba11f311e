"""The decision on a submission: what is said, what is attached, and whether it goes on. Loads the readers; see submit.py."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from peakgate.client.errors import PeakgateError
from peakgate.client.origin import placed
from peakgate.client.slurm_defaults import CARDS_FILE
from peakgate.hooks.change import change_of
from peakgate.hooks.message import REFUSED, SUBMITTED, Told, lines_of, plain, shown
from peakgate.hooks.slurm.attached import PREDICTION, Attached, attach, read_attached
from peakgate.hooks.slurm.card_table import TableError
from peakgate.hooks.slurm.command_line import CommandLine, Component, asks_for_gpus, options_around, options_of_environment
from peakgate.hooks.slurm.host_cards import HostCards, host_cards
from peakgate.hooks.slurm.judge import Judged, Launch, judge, source_of
from peakgate.hooks.slurm.submit_settings import FILE_VARIABLE, SettingsError, SubmitSettings, read_settings_of_host
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict

TRY_WITH = "to try it: --peakgate-try REASON"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`words`: for the real program; `environment`: what it has beside the user's; `comment`: the same for a plugin that can set one."""

    words: Sequence[str]
    lines: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    is_refused: bool = False


def decide(line: CommandLine, script: str, environment: Mapping[str, str]) -> Decision | None:
    """What becomes of a submission; None where nothing in it trains. Raises PeakgateError and SettingsError."""
    settings, told = _settings(line, environment)
    if settings.mode == "off":
        return None
    around = options_around(line, script, environment)
    found = [
        _decided(line, component, script, environment, settings, around)
        for component in line.components
        if asks_for_gpus(around | dict(component.options))
    ]
    decisions = [decision for decision in found if decision is not None]
    if not decisions:
        return None
    worst = next((each for each in decisions if each.is_refused), decisions[0])
    lines = [*told, *worst.lines]
    return Decision(
        words=_with_comments(line, worst.comment) if _needs_comment(line, around) and worst.comment else line.words,
        lines=[] if settings.mode == "shadow" else lines[:3],
        environment=worst.environment,
        comment=worst.comment,
        is_refused=worst.is_refused,
    )


def _settings(line: CommandLine, environment: Mapping[str, str]) -> tuple[SubmitSettings, list[str]]:
    """The settings in force; a file that cannot be used is said, and the defaults hold."""
    try:
        return read_settings_of_host(line.own, environment), []
    except SettingsError as error:
        usable = {**environment, FILE_VARIABLE: os.devnull, "PEAKGATE_MODE": ""}
        return read_settings_of_host({}, usable), [plain(str(error))]


def _decided(
    line: CommandLine,
    component: Component,
    script: str,
    environment: Mapping[str, str],
    settings: SubmitSettings,
    around: dict[str, str],
) -> Decision | None:
    options = around | dict(component.options)
    own = read_attached({}, options.get("comment", ""))
    source = source_of(_launch(line, component, script, environment, options, own.stated))
    if source is None:
        return None
    try:
        cards = host_cards(options, Path(settings.cards) if settings.cards else CARDS_FILE)
    except TableError as error:
        return Decision(words=line.words, lines=[plain(f"not checked: {error}")])
    source = cards.under(source)
    asides = source.launch.reading.asides if source.launch is not None else {}
    try_reason = line.own.get("try") or own.try_reason or asides.get("try", "")
    override = line.own.get("override") or own.override or asides.get("override", "")
    try:
        judged = judge(source, settings, try_reason=try_reason, is_test="test_only" in options)
    except PeakgateError as error:
        return Decision(words=line.words, lines=[plain(f"not checked: {placed(error, source.origin).message}")])
    attached = attach(judged.job, prediction=judged.answer.prediction, script=_bytes(script), try_reason=try_reason, override=override)
    attached = replace(attached, stated=own.stated, within=_within(environment))
    return _of(line, judged, attached, settings, options, cards)


def _within(environment: Mapping[str, str]) -> str:
    """The job that this one is submitted from."""
    number = environment.get("SLURM_JOB_ID", "")
    return number if number.isascii() and number.isdigit() else ""


def _of(
    line: CommandLine, judged: Judged, attached: Attached, settings: SubmitSettings, options: Mapping[str, str], cards: HostCards
) -> Decision:
    answer, rejected = judged.answer, judged.answer.verdict == Verdict.VERDICT_REJECT
    refused = rejected and settings.mode == "enforce" and not attached.override and not answer.try_anyway.granted
    is_silent = settings.gate and not refused  # the gate says it; what is refused here never reaches it
    is_said = not is_silent and _is_worth_saying(answer, options)
    lines = lines_of(answer, _told(judged, settings, cards, is_refused=refused)) if is_said else ()
    attached = replace(attached, is_told=bool(lines) and settings.mode != "shadow")
    return Decision(
        words=line.words,
        lines=lines,
        environment=_environment(line, attached, options),
        comment=_comment_of(attached, options.get("comment", "")),
        is_refused=refused,
    )


def _comment_of(attached: Attached, own: str) -> str:
    comment = attached.comment(own)
    return comment if comment != own else ""


def _told(judged: Judged, settings: SubmitSettings, cards: HostCards, *, is_refused: bool) -> Told:
    suggestion = shown(judged.answer.suggestions)
    launch = judged.source.launch
    return Told(
        change=change_of(suggestion, launch) if suggestion is not None and launch is not None else "",
        card=cards.ask_for(judged.answer),
        too_small=cards.too_small(judged.answer),
        outcome=REFUSED if is_refused else SUBMITTED,
        unserved=judged.unserved,
        try_with=judged.answer.try_anyway.message or (TRY_WITH if is_refused and settings.server else ""),
    )


def _is_worth_saying(answer: PredictResponse, options: Mapping[str, str]) -> bool:
    """A job that fits is not spoken of to somebody who asked for quiet."""
    return answer.verdict == Verdict.VERDICT_REJECT or not {"quiet", "Q"}.intersection(options)


def _environment(line: CommandLine, attached: Attached, options: Mapping[str, str]) -> Mapping[str, str]:
    """The variables: all of them for a batch job, the prediction for the tasks of an srun or a shell of an salloc."""
    export = options.get("export", "ALL").split(",")
    found = attached.environment(is_exported="ALL" in export and "export_file" not in options)
    return found if line.program == "sbatch" else {name: text for name, text in found.items() if name.endswith(PREDICTION)}


def _needs_comment(line: CommandLine, around: Mapping[str, str]) -> bool:
    """Whether no plugin sees the environment: of srun and salloc, and of a batch job whose environment comes from a file."""
    return line.program != "sbatch" or any("export_file" in {**around, **component.options} for component in line.components)


def _with_comments(line: CommandLine, comment: str) -> tuple[str, ...]:
    """The words with the comment behind the options of each component, where the last one counts."""
    words = list(line.words)
    for component in reversed(line.components):
        words.insert(component.end, f"--comment={comment}")
    return tuple(words)


def _launch(
    line: CommandLine, component: Component, script: str, environment: Mapping[str, str], options: Mapping[str, str], stated: str
) -> Launch:
    is_wrapped = "wrap" in options
    behind = line.behind if line.program != "sbatch" or line.behind or is_wrapped else ("script",)
    return Launch(
        program=line.program,
        options=(*_of_variables(line, environment), *line.words[component.begin : component.end]),
        behind=behind,
        script="" if is_wrapped else script,
        folder=Path(options.get("chdir", "")),
        environment=environment,
        stated=stated if line.program != "sbatch" else "",
    )


def _of_variables(line: CommandLine, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Options that stand in variables (SBATCH_GPUS), in front of those of the command line, which win."""
    return tuple(f"--{name.replace('_', '-')}={value}" for name, value in options_of_environment(line.program, environment))


def _bytes(script: str) -> bytes:
    return script.encode("utf-8", "surrogateescape")
