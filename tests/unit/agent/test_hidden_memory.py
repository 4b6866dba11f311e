"""Memory that no listed process holds."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.agent.builders import GIB

from peakgate.agent.hidden_memory import SURE_AFTER_LISTS, HiddenMemory


def after(lists: Sequence[tuple[float | None, Sequence[float | None]]]) -> HiddenMemory:
    """Lists of (device GiB, processes' GiB)."""
    hidden = HiddenMemory()
    for device, processes in lists:
        hidden.see(
            device_bytes=None if device is None else int(device * GIB),
            used=[None if one is None else int(one * GIB) for one in processes],
        )
    return hidden


def test_what_was_hidden_before_the_job_is_nobodys() -> None:
    """A display server or pages that a GH200 keeps: the same before and during the job."""
    hidden = after([(3, []), *[(33, [30])] * 5])
    assert (hidden.hidden_bytes, hidden.is_growing) == (3 * GIB, False)


def test_what_grows_with_the_job_is_told() -> None:
    """Managed memory: the device fills, the process's figure does not."""
    assert after([(1, []), (6, [5]), *[(60, [5])] * SURE_AFTER_LISTS]).is_growing
    assert not after([(1, []), *[(60, [5])] * (SURE_AFTER_LISTS - 1)]).is_growing


def test_two_readings_that_do_not_meet_are_no_memory() -> None:
    """A process that gave 20 GiB back between the two readings."""
    assert not after([(1, []), (30, [10]), (30, [29]), (30, [10]), (30, [29])]).is_growing


def test_nothing_is_said_without_all_figures() -> None:
    """A process whose memory is not available may hold all of it."""
    assert not after([(0, []), *[(60, [5, None])] * 9]).is_growing
    assert not after([(None, [5])] * 9).is_growing


def test_an_empty_gpu_begins_anew() -> None:
    """What stays behind after a job is not the next one's."""
    assert not after([(0, []), *[(60, [5])] * 5, (40, []), *[(50, [10])] * 5]).is_growing
