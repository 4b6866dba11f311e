"""Laws of what is made of an attempt: nothing depends on order or repeats, and no end of the need lies where nobody looked."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.attempts import CARD, SECOND, SUBJECT, a_peak, an_attempt

from peakgate.calibration import Subject
from peakgate.server.classing import Kind
from peakgate.server.figures import figures_of
from peakgate.server.lengths import AtLength
from peakgate.server.observe import observe
from peakgate.server.store.events import HEAVIEST_FIRST, heaviest
from peakgate.server.store.records import FLAGS, IMPORTED, SOURCES, TERMINAL_EVENTS, Attempt, PeakRow

RARE_FLAGS = st.sampled_from([0] * 12 + list(FLAGS.values()))
BYTES = st.integers(1, int(CARD * 1.02))


@st.composite
def rows(draw: st.DrawFn) -> PeakRow:
    """Any row that the door lets in."""
    reserved = draw(st.sampled_from([0, 0, 1])) * draw(BYTES)
    first = draw(st.integers(0, 20))
    return a_peak(
        gpu_uuid=draw(st.sampled_from(["GPU-0", "GPU-1"])),
        pid=draw(st.integers(0, 3)),
        source=draw(st.sampled_from(["", *SOURCES])),
        step=draw(st.sampled_from(["", "0", "1"])),
        peak_bytes=draw(BYTES),
        gpu_total_bytes=draw(st.sampled_from([0, CARD, CARD])),
        torch_reserved_bytes=reserved,
        torch_allocated_bytes=draw(st.integers(0, reserved)),
        flags=draw(RARE_FLAGS),
        first_us=first * SECOND,
        last_us=(first + draw(st.integers(0, 20))) * SECOND,
        steps_done=draw(st.integers(0, 3)),
        longest_sequence=draw(st.sampled_from([0, 512])),
        alloc_retries=draw(st.sampled_from([0, 0, 2])),
        ooms=draw(st.sampled_from([0] * 9 + [1])),
    )


@st.composite
def attempts(draw: st.DrawFn) -> Attempt:
    """Rows and the heaviest of some events."""
    events = draw(st.lists(st.sampled_from(TERMINAL_EVENTS), max_size=3))
    return an_attempt(*draw(st.lists(rows(), max_size=8)), event=heaviest(events), model_version=draw(st.sampled_from(["1"] * 9 + ["0"])))


def half(tokens: int) -> Subject | None:
    """The figures of a capped job for a length that was seen."""
    return replace(SUBJECT, required_bytes=25_000, device_bytes=29_000) if tokens else None


CAPS = st.sampled_from([None, None, half])


@given(attempt=attempts(), at_length=CAPS, data=st.data())
def test_order_and_repeats_change_nothing(attempt: Attempt, at_length: AtLength | None, data: st.DataObject) -> None:
    """Rows may come in any order, and twice."""
    shuffled = data.draw(st.permutations(attempt.peaks + attempt.peaks))
    again = an_attempt(*shuffled, event=attempt.event, model_version=attempt.model_version)
    assert observe(again, model_version="1", at_length=at_length) == observe(attempt, model_version="1", at_length=at_length)


@given(attempt=attempts(), at_length=CAPS)
def test_kind_and_ends_belong_together(attempt: Attempt, at_length: AtLength | None) -> None:
    """A dropped attempt has no ends and a reason, a lower one no upper end, the others both in order; the class is X or the figure's."""
    found = observe(attempt, model_version="1", at_length=at_length)
    assert (found.observation is None) == (found.kind is Kind.DROPPED)
    assert (found.reason == "") == (found.kind is Kind.EXACT)
    if found.observation is None:
        assert found.confidence == "X"
        return
    lower, upper = found.observation.lower_bytes, found.observation.upper_bytes
    assert (upper is None) == (found.kind is Kind.LOWER)
    assert 0 <= lower <= (upper if upper is not None else lower)
    assert found.confidence in set("ABCDX")
    assert found.confidence != "X" or found.kind is Kind.LOWER


@given(attempt=attempts(), at_length=CAPS)
def test_no_lower_end_lies_above_what_was_seen(attempt: Attempt, at_length: AtLength | None) -> None:
    """At the most at the card, when the card was full of the job; and never above what some source showed."""
    found = observe(attempt, model_version="1", at_length=at_length)
    if found.observation is None:
        return
    of_gpu = [row for row in attempt.peaks if row.gpu_uuid == found.gpu_uuid]
    processes: dict[tuple[int, str], int] = {}
    for row in of_gpu:
        processes[row.pid, row.source] = max(processes.get((row.pid, row.source), 0), row.peak_bytes)
    seen = max(*(row.peak_bytes for row in of_gpu), *(row.torch_reserved_bytes for row in of_gpu), sum(processes.values()))
    if found.reason == "OUT_OF_MEMORY":
        seen = max(seen, *(row.gpu_total_bytes for row in of_gpu))
    assert found.observation.lower_bytes <= seen
    assert found.observed_bytes <= seen


@given(attempt=attempts())
def test_a_figure_names_the_source_that_it_rests_on(attempt: Attempt) -> None:
    """One that reported, and an import only where nobody else did. Of a job of which a GPU was seen there is a figure."""
    figures = figures_of(attempt.peaks)
    assert bool(figures) == bool(attempt.peaks)
    for gpu in figures:
        sources = {row.source or "sampled" for row in attempt.peaks if row.gpu_uuid == gpu.gpu_uuid}
        assert gpu.source in sources
        assert gpu.source not in IMPORTED or {row.source for row in attempt.peaks} <= set(IMPORTED)


@given(events=st.lists(st.sampled_from(HEAVIEST_FIRST), min_size=1), data=st.data())
def test_several_events_of_one_attempt_give_one_result(events: list[str], data: st.DataObject) -> None:
    """In any order, and repeated."""
    assert heaviest(data.draw(st.permutations(events + events))) == heaviest(events)
