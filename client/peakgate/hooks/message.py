"""What a submitter reads: three lines at most, which part is too large and by how much, the cheapest change, and where the rest stands.

Pure, and plain ASCII: the lines pass through a controller's log and terminals of any kind. Names that users chose are spelled out, so that
none of them moves a cursor.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from peakgate.client.render.card import card_words
from peakgate.client.render.suggestions import assignments
from peakgate.client.render.text import visible
from peakgate.client.render.units import gb, step_time
from peakgate.v1.names import bare_id
from peakgate.v1.prediction_pb2 import PredictResponse, Suggestion, Verdict

MARK = "peakgate: "
WIDTH, MOST_LINES = 120, 3
SHORTEST_CARD = 20
"""Characters that a card's name keeps; before that the phase gives way."""

_ASCII = {"\N{NO-BREAK SPACE}": " ", "×": "x", "…": "...", "–": "-", "—": "-", "→": "->", "’": "'", "²": "2", "³": "3"}
REFUSED, SUBMITTED = "refused", "submitted all the same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Beside the answer: `change`, the cheapest one in the job's own syntax (empty: the suggestion's own words); `card`: a type that it may
    get and that holds it, where it asks for none; `too_small`: a card that it may get as well and that does not; `outcome`: what happens
    now, in words; `unserved`: why the answer is not the service's; `try_with`: how to try a rejected job all the same; `is_brief`: no
    change was looked for yet."""

    change: str = ""
    card: str = ""
    too_small: str = ""
    outcome: str = ""
    unserved: str = ""
    try_with: str = ""
    is_brief: bool = False


def lines_of(answer: PredictResponse, told: Told | None = None) -> list[str]:
    """The lines, without an end of line; one for a job that fits."""
    told = told or Told()
    if answer.verdict == Verdict.VERDICT_REJECT:
        found = [_too_large(answer), _change(answer, told), _rest(answer, told)]
    elif answer.verdict == Verdict.VERDICT_ADMIT:
        found = [_fits(answer, told)]
    else:
        found = textwrap.wrap(ascii_of(_open(answer, told)), WIDTH - len(MARK), max_lines=MOST_LINES, placeholder=" ...")
    return [plain(each) for each in found if each]


def shown(suggestions: Sequence[Suggestion]) -> Suggestion | None:
    """The first change that makes the job fit, for they come cheapest first; else the first, which comes nearest."""
    return next((each for each in suggestions if each.fits), suggestions[0] if suggestions else None)


def plain(text: str, width: int = WIDTH) -> str:
    """A line for any terminal: marked, ASCII without control characters, cut where it is too long."""
    return cut(MARK + ascii_of(text), width)


def ascii_of(text: str) -> str:
    """The text on one line, in characters that every terminal and log has."""
    spelled = "".join(_ASCII.get(letter, letter) for letter in visible(re.sub(r"\s+", " ", text).strip()))
    return spelled.encode("ascii", "replace").decode()


def cut(text: str, room: int) -> str:
    """At most `room` characters, cut between words where there are some."""
    if len(text) <= room:
        return text
    kept = text[: room - 4]
    whole_words = kept.rpartition(" ")[0]
    kept = whole_words if len(whole_words) > room // 2 else kept
    return f"{kept.rstrip(' .,;')} ..."


def _too_large(answer: PredictResponse) -> str:
    """`activations 61.0 GB at the peak in backward: a GPU needs 92.1 GB, h100-80gb has 85.0 GB, 7.1 GB too few`."""
    need, have = answer.peak.bound_bytes, answer.capacity.usable_bytes
    sizes: dict[str, int] = {}
    for line in answer.ledger:
        sizes[line.category] = sizes.get(line.category, 0) + line.bytes
    category = re.match(r"(\w+):", answer.reason)
    name = category[1] if category else max(sizes, key=lambda each: sizes[each], default="")
    share = f" {gb(sizes[name])}" if name in sizes else ""
    places = (f" at the peak in {answer.peak_phase}", f" in {answer.peak_phase}", "") if answer.peak_phase else ("",)
    before, behind = f": a GPU needs {gb(need)}, ", f" has {gb(have)}, {gb(need - have)} too few"
    card = ascii_of(card_words(answer.capacity))
    room = WIDTH - len(MARK) - len(before) - len(behind) - len(_words(name) + share)
    where = next((each for each in places if len(each) + min(len(card), SHORTEST_CARD) <= room), "")
    return f"{_words(name)}{share}{where}{before}{_shortened(card, room - len(where))}{behind}"


def _shortened(name: str, room: int) -> str:
    """Both ends of a name: the card's, and the slice's."""
    room = max(room, SHORTEST_CARD)
    if len(name) <= room:
        return name
    tail = 2 * (room - 3) // 3
    return f"{name[: room - 3 - tail]}...{name[-tail:]}"


def _change(answer: PredictResponse, told: Told) -> str:
    """A change without its last value is of no use: what it comes to gives way first."""
    if told.card:
        given = card_words(answer.capacity, "less")
        return f"cheapest change: ask for a card that holds it, gpu:{told.card}; without a type it may get {given}"
    found = shown(answer.suggestions)
    if found is None and told.is_brief:
        return ""
    if found is None:
        return "no change on the list makes it fit on these GPUs"
    before = "cheapest change: " if found.fits else "nothing fits on these GPUs, nearest: "
    time = f", {step_time(found.relative_step_time)}" if found.relative_step_time else ""
    results = (f" (then {gb(found.bound_bytes)}{time})", f" (then {gb(found.bound_bytes)})", "")
    change, room = ascii_of(told.change or ", ".join(assignments(found)) or found.title), WIDTH - len(MARK) - len(before)
    behind = next((each for each in results if len(change) + len(each) <= room), results[0])
    return before + cut(change, room - len(behind)) + behind


def _rest(answer: PredictResponse, told: Told) -> str:
    """What happens now, how to try all the same, and where the whole answer stands."""
    identity = bare_id(answer.prediction)
    more = f"more: peakgate explain {identity}" if identity else told.unserved
    room = WIDTH - len(MARK)
    parts = [part for part in (told.outcome, told.try_with, more) if part]
    while len("; ".join(parts)) > room and len(parts) > 2:
        parts.pop(1)
    if identity and len(parts) > 1:  # without its end the name leads nowhere
        parts[0] = cut(ascii_of(parts[0]), room - len("; ") - len(more))
    return "; ".join(parts)


def _fits(answer: PredictResponse, told: Told) -> str:
    card = card_words(answer.capacity)
    need = gb(answer.peak.bound_bytes)
    text = f"fits: a GPU needs {need} of {gb(answer.capacity.usable_bytes)} of {card}"
    if told.too_small:
        asked = f"; ask for gpu:{told.card}" if told.card else ""
        text = f"fits {card}, not {told.too_small}, which it may get as well: a GPU needs {need}{asked}"
    return f"{text} ({told.unserved})" if told.unserved else text


def _open(answer: PredictResponse, told: Told) -> str:
    text = f"cannot be judged: {answer.reason}"
    return f"{text} ({told.unserved})" if told.unserved else text


def _words(category: str) -> str:
    return category.replace("_", " ")
