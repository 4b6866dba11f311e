"""Writes docs/accuracy.md from the golden rows: `python -m tests.bench.report`. The suite checks that the page is up to date.

The predictions are made in this process by the memory model alone, with the same conversions that the service uses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from types import MappingProxyType

from tests.bench.accuracy import Json, at, figures_of, nearest_rank, number, predicted_bytes, ratios_of, rows, traced_figures
from tests.bench.programs import ROOT
from tests.bench.said import SAID
from tests.bench.suggestions import PAIR_HEAD, counts_line, pair_line
from tests.bench.suggestions import pairs as suggestion_pairs

from peakgate.memory.change import Value, with_changes
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError
from peakgate.server.convert import job_from_message
from peakgate.v1.document import DocumentError, parse_job

PAGE = ROOT / "docs/accuracy.md"
TEMPLATE = ROOT / "docs/accuracy.in.md"
Pair = tuple[Json, Json]


def answer_of(document: object, adds: Mapping[str, Value] = MappingProxyType({})) -> Json:
    """The parts of an answer that the scorer reads; an error object for a job that cannot be judged. `adds`: fields beyond the document."""
    try:
        job = job_from_message(parse_job(document if isinstance(document, Mapping) else {}))
        p = predict(with_changes(job, adds.items()))
    except (JobError, DocumentError) as error:
        return {"error": {"message": str(error)}}
    peaks = {name: getattr(p, name) for name in ("live_bytes", "allocated_bytes", "reserved_bytes", "device_bytes", "required_bytes")}
    ledger = [{"category": line.category, "bytes": line.bytes} for line in p.ledger]
    facts = {"saved_activation_bytes_per_layer": p.saved_activation_bytes_per_layer}
    return {"peak": peaks, "ledger": ledger, "model": facts, "peak_phase": p.peak_phase, "undecided": list(p.undecided)}


def pairs_of(name: str) -> list[Pair]:
    """(row, answer) of a golden file."""
    return [(row, answer_of(at(row, "job"))) for row in rows(name)]


def table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*out, *("| " + " | ".join(map(str, line)) + " |" for line in lines)])


def grouped(pairs: Sequence[Pair], name_of: Callable[[Pair], str]) -> list[tuple[str, list[Pair]]]:
    """Pairs by name, with all of them last."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[name_of(pair)].append(pair)
    return [*sorted(groups.items()), ("all", list(pairs))]


TRACED_SETS = ("traced_small", "traced_optimizers", "traced_fullsize", "traced_methods", "traced_frozen", "traced_clip")
"""Golden files of the table of traced models."""


def traced_table() -> str:
    """Errors against traced models by architecture."""
    pairs = [pair for name in TRACED_SETS for pair in pairs_of(name)]
    lines = []
    for name, group in grouped(pairs, architecture):
        found = traced_figures(group)
        undecided = sum(bool(at(answer, "undecided")) for _, answer in group)
        cells = [f"{max(errors):.1e}" if errors else "–" for errors in (found.layer_errors, found.peak_errors)]
        lines.append((name, len(group), *cells, found.phases_right, undecided or ""))
    return table(("architecture", "rows", "saved bytes a layer, worst", "peak of live bytes, worst", "phase right", "UNDECIDED"), lines)


def published_table(name_of: Callable[[Pair], str], title: str, pairs: Sequence[Pair]) -> str:
    """Errors against published measurements."""
    lines = []
    for name, group in grouped(pairs, name_of):
        ratios = [ratio for row, answer in group for ratio in ratios_of(row, answer)]
        if not ratios:
            continue
        errors = sorted(abs(math.log(ratio)) for ratio in ratios)
        under = sum(ratio < 0.95 for ratio in ratios) / len(ratios)
        bias = sum(map(math.log, ratios)) / len(ratios)
        lines.append((name, len(ratios), f"{median(errors):.4f}", f"{nearest_rank(errors, 0.9):.3f}", f"{bias:+.3f}", f"{under:.0%}"))
    head = (title, "measurements", "median of the absolute log ratio", "90th percentile", "mean log ratio", "more than 5 % under")
    return table(head, lines)


def verdict_table(pairs: Sequence[Pair]) -> str:
    """What required_bytes alone would have said."""
    lines = []
    for name, group in grouped(pairs, framework):
        found = figures_of(group)
        if found.out_of_memory_caught.total or found.false_rejects.total:
            lines.append((name, found.out_of_memory_caught, found.false_rejects))
    return table(("framework", "out of memory, caught (not by states alone)", "ran, yet required_bytes passes the card"), lines)


def aims_table(pairs: Sequence[Pair]) -> str:
    """What the project aims at on published measurements, and what it finds."""
    ratios = [ratio for row, answer in pairs for ratio in ratios_of(row, answer)]
    errors, found = sorted(abs(math.log(ratio)) for ratio in ratios), figures_of(pairs)
    bias, under = sum(map(math.log, ratios)) / len(ratios), sum(ratio < 0.95 for ratio in ratios) / len(ratios)
    caught, rejected = found.out_of_memory_caught, found.false_rejects
    lines = [
        ("median of the absolute log ratio", "0.01", f"{median(errors):.3f}", median(errors) <= 0.01),
        ("its 90th percentile", "0.10", f"{nearest_rank(errors, 0.9):.3f}", nearest_rank(errors, 0.9) <= 0.10),
        ("mean log ratio", "within 0.01 of 0", f"{bias:+.3f}", abs(bias) <= 0.01),
        ("more than 5 % under", "8 %", f"{under:.0%}", under <= 0.08),
        ("out of memory, caught by required_bytes", "90 %", f"{caught} = {caught.ratio:.0%}", caught.ratio >= 0.9),
        ("ran, yet required_bytes passes the card", "2 %", f"{rejected} = {rejected.ratio:.0%}", rejected.ratio <= 0.02),
    ]
    return table(("figure", "aim", "found", ""), [(name, aim, value, "met" if met else "**missed**") for name, aim, value, met in lines])


NAMED = {
    "vramcalc": ("vramcalc-", "allocated_bytes"),
    "SimuMax": ("simumax-", "allocated_bytes"),
    "torchtune, Llama-3.2-3B": ("tune-32-3b", "allocated_bytes"),
    "torchtitan, Llama-3.1-8B": ("titan-8b", "reserved_bytes"),
}


def named_table(pairs: Sequence[Pair]) -> str:
    """Single rows that others can check."""
    lines = []
    for row, answer in pairs:
        for title, (prefix, peak) in NAMED.items():
            measured = number(row, "outcome.peak_bytes")
            if str(at(row, "id")).startswith(prefix) and measured:
                got = number(answer, f"peak.{peak}")
                lines.append((title, at(row, "id"), f"{measured / 1e9:.3f}", f"{got / 1e9:.3f}", f"{got / measured - 1:+.2%}"))
    return table(("source", "row", "measured, GB", "predicted, GB", "error"), sorted(lines))


def said_table(pairs: Sequence[Pair]) -> str:
    """Rows whose source says more than their document."""
    lines = []
    for said in SAID:
        for row, answer in pairs:
            if not str(at(row, "id")).startswith(said.ids):
                continue
            measured = number(row, "outcome.peak_bytes")
            metric = str(at(row, "outcome.metric"))
            got = [predicted_bytes(each, metric, measured) for each in (answer, answer_of(at(row, "job"), said.adds))]
            cells = [f"{each / 1e9:.3f} ({each / measured - 1:+.1%})" for each in got]
            lines.append((at(row, "id"), f"{measured / 1e9:.3f}", *cells, said.where))
    return table(("row", "measured, GB", "as documented", "with what the source says", "what it says"), lines)


def pairs_table() -> str:
    """What others did when a job ran out of memory, and at which place it is suggested."""
    return table(PAIR_HEAD, [pair_line(pair, ask_all=False) for pair in suggestion_pairs()])


def framework(pair: Pair) -> str:
    """The framework that a row names."""
    return str(at(pair[0], "job.framework.name"))


def architecture(pair: Pair) -> str:
    """The block of a traced model."""
    return str(at(pair[0], "job.model.transformer.block") or at(pair[0], "job.model.hf_config.model_type"))


def family(pair: Pair) -> str:
    """The architecture of a published row's model."""
    return str(at(pair[0], "family"))


def sharding(pair: Pair) -> str:
    """How the states of a row's job are sharded."""
    return str(at(pair[0], "job.parallelism.sharding") or "not stated")


def page() -> str:
    """The whole page."""
    published = pairs_of("published_jobs")
    parts = {
        "TRACED": traced_table(),
        "AIMS": aims_table(published),
        "FRAMEWORKS": published_table(framework, "framework", published),
        "MODELS": published_table(family, "architecture", published),
        "SHARDING": published_table(sharding, "sharding", published),
        "VERDICTS": verdict_table(published),
        "NAMED": named_table(published),
        "SAID": said_table(published),
        "PAIRS": pairs_table(),
        "SUGGESTED": counts_line(),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in parts.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
