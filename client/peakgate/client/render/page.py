"""An answer as one HTML page that loads nothing: text, a bar a line of the ledger, the step as a drawn curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from peakgate.client.errors import InputError
from peakgate.client.render.answer import verdict_word
from peakgate.client.render.card import card_words
from peakgate.client.render.suggestions import changes_text
from peakgate.client.render.text import escape_html as escape
from peakgate.client.render.units import gb, gb_and_gib, step_time
from peakgate.v1.prediction_pb2 import LedgerLine, PredictResponse, Suggestion, TimelinePoint

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #667085; --line: #d0d5dd; --bar: #3b6fd4; --paper: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #344054; --bar: #7aa2f7; --paper: #12161c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number { text-align: right; white-space: nowrap; } .soft { color: var(--soft); }
.bar { background: var(--bar); height: .7rem; min-width: 1px; } td.wide { width: 35%; }
svg { width: 100%; height: auto; } svg path { fill: var(--bar); opacity: .75; } svg line { stroke: var(--line); }
svg text { fill: var(--soft); font-size: 11px; }
.ADMIT { color: #17803d; } .REJECT { color: #c4281c; } .UNDECIDED { color: #a15c00; }
"""

_WIDTH, _HEIGHT, _FOOT = 900, 220, 20


def write_page(path: Path, label: str, answer: PredictResponse) -> None:
    """Writes the page to `path`. Raises InputError when that cannot be written."""
    write_html(path, page(label, answer))


def write_html(path: Path, text: str) -> None:
    """Writes a page. Raises InputError when that cannot be done."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", reason="FILE_UNWRITABLE") from error


def page(label: str, answer: PredictResponse) -> str:
    """The page as text."""
    word = verdict_word(answer.verdict)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{word} – {escape(label)}</title><style>{STYLE}</style></head><body>",
            f'<h1><span class="{word}">{word}</span> {escape(label)}</h1><p>{escape(answer.reason)}</p>',
            _section("Peaks of the worst GPU", _peaks(answer)),
            _section("What the memory consists of at the peak", _ledger(answer.ledger)),
            _section("One training step in steady state", _curve(answer.timeline)),
            _section("What would change it", _suggestions(answer.suggestions)),
            _section("Warnings", _list(answer.warnings)),
            _section("Assumed, because the job does not say", _list(answer.assumptions)),
            "</body></html>",
        ]
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}" if content else ""


def _peaks(answer: PredictResponse) -> str:
    peak = answer.peak
    rows = (
        ("needed", peak.required_bytes, "smallest card on which the step completes"),
        ("upper bound", peak.bound_bytes, f"holds in {peak.coverage:.0%} of jobs"),
        ("card", answer.capacity.usable_bytes, f"usable of {card_words(answer.capacity, 'the stated card')}"),
        ("allocated", peak.allocated_bytes, "torch.cuda.max_memory_allocated"),
        ("reserved", peak.reserved_bytes, "torch.cuda.max_memory_reserved"),
        ("on the device", peak.device_bytes, "nvidia-smi"),
        ("host memory", peak.host_bytes, "main memory of a node, for what is offloaded"),
    )
    cells = (
        f'<tr><td>{name}</td><td class="number">{gb_and_gib(size)}</td><td class="soft">{escape(meaning)}</td></tr>'
        for name, size, meaning in rows
        if size
    )
    phase = f"<p>The highest moment is in the phase <b>{escape(answer.peak_phase)}</b>. {escape(answer.rank.reason)}</p>"
    return f"<table>{''.join(cells)}</table>{phase}"


def _ledger(ledger: Iterable[LedgerLine]) -> str:
    lines = sorted(ledger, key=lambda line: -line.bytes)
    total = sum(line.bytes for line in lines) or 1
    rows = (
        f'<tr><td>{escape(line.category)}</td><td>{escape(line.item)}</td><td class="number">{gb(line.bytes)}</td>'
        f'<td class="wide"><div class="bar" style="width:{line.bytes / total:.1%}"></div></td></tr>'
        for line in lines
    )
    return f"<table>{''.join(rows)}</table>" if lines else ""


def _curve(points: Sequence[TimelinePoint]) -> str:
    if not points:
        return ""
    highest = max(point.allocated_bytes for point in points) or 1
    step = _WIDTH / len(points)
    outline = [f"M0 {_HEIGHT}"]
    for index, point in enumerate(points):
        y = _HEIGHT - point.allocated_bytes / highest * (_HEIGHT - _FOOT)
        outline.append(f"L{index * step:.1f} {y:.1f}L{(index + 1) * step:.1f} {y:.1f}")
    outline.append(f"L{_WIDTH} {_HEIGHT}Z")
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" role="img" aria-label="Allocated memory over one step, at most {gb(highest)}">'
        f'<path d="{"".join(outline)}"/><text x="4" y="12">{gb(highest)}</text>{_phase_marks(points, step)}</svg>'
    )


def _phase_marks(points: Sequence[TimelinePoint], step: float) -> str:
    marks: list[str] = []
    before = ""
    for index, point in enumerate(points):
        if point.phase != before:
            x = index * step
            marks.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT + _FOOT}"/>')
            marks.append(f'<text x="{x + 4:.1f}" y="{_HEIGHT + 14}">{escape(point.phase)}</text>')
            before = point.phase
    return "".join(marks)


def _suggestions(suggestions: Iterable[Suggestion]) -> str:
    rows = [
        f"<tr><td><b>{escape(each.title)}</b><br><code>{escape(changes_text(each))}</code><br>"
        f'<span class="soft">{escape(each.why)}</span></td><td class="number">{gb(each.bound_bytes)}</td>'
        f"<td>{'fits' if each.fits else 'does not fit'}</td><td>{step_time(each.relative_step_time)}</td></tr>"
        for each in suggestions
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""
