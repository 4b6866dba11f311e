"""Rows of trainings that have ended, when a later one of the same attempt begins."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.agent.builders import OTHER_GPU, a_key, a_row

from peakgate.agent.ended_rows import EndedRows
from peakgate.agent.peaks import NO_FLAGS, Flag, PeakRow
from peakgate.agent.trainings import MAX_ATTEMPTS


def an_ended(job: str = "402", *, pid: int = 0, source: str = "sampled", flags: Flag = NO_FLAGS, gpu: str = OTHER_GPU) -> PeakRow:
    """The last row of a whole job on a GPU."""
    return a_row(replace(a_key(pid=pid, job=job, gpu_uuid=gpu), source=source), flags=flags, ended=True)


def test_what_was_sent_is_sent_once_more_with_the_mark() -> None:
    """Each GPU and source of the attempt, as it stood, flags kept; and only once."""
    rows = EndedRows()
    sent = [an_ended(flags=Flag.FLUCTUATING), an_ended(source="accounting"), an_ended("403")]
    rows.note(sent)
    attempt = sent[0].key.attempt
    want = [replace(row, flags=row.flags | Flag.SEVERAL) for row in sent[:2]]
    assert rows.take_several(attempt) == want
    assert rows.take_several(attempt) == []


def test_only_ended_rows_of_predicted_jobs_are_kept() -> None:
    """What lives is marked where it is, a process's row does not count beside its job's, and without a prediction nobody learns."""
    rows = EndedRows()
    alive, process, marked = replace(an_ended(), ended=False), an_ended(pid=7), an_ended(flags=Flag.SEVERAL)
    unpredicted = replace(an_ended(), key=replace(an_ended().key, prediction=""))
    rows.note([alive, process, marked, unpredicted])
    assert [rows.take_several(row.key.attempt) for row in (alive, unpredicted)] == [[], []]


def test_the_latest_row_of_a_gpu_counts() -> None:
    """A figure that came after the end replaces what was kept."""
    rows = EndedRows()
    later = replace(an_ended(), peak_bytes=7, samples=9)
    rows.note([an_ended()])
    rows.note([later])
    assert [(row.peak_bytes, row.samples) for row in rows.take_several(later.key.attempt)] == [(7, 9)]


def test_what_is_kept_is_bounded() -> None:
    """The attempts longest unseen are forgotten."""
    rows = EndedRows()
    rows.note(an_ended(str(number)) for number in range(MAX_ATTEMPTS + 1))
    assert len(rows._rows) == MAX_ATTEMPTS
    assert rows.take_several(an_ended("0").key.attempt) == []
