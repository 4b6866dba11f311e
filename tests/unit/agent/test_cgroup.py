"""Control groups as the schedulers name them."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.agent.cgroup_vectors import GROUPS, SLUID, STEPD, Vector

from peakgate.agent.cgroup import CgroupJob, job_of
from peakgate.agent.proc import ProcFolder

VECTORS = {f"{group}: {name}": vector for group, vectors in GROUPS.items() for name, vector in vectors.items()}
SEGMENTS = st.lists(st.text("abcdefgh0123456789_.-@:\\ ", min_size=1, max_size=12), max_size=4)


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())
def test_the_job_of_a_control_group(vector: Vector) -> None:
    """Each scheduler's names give its job; a process outside all of them gives none, whatever a user calls his groups."""
    text, *names = vector
    got = job_of(text)
    assert ([got.kind, got.job, got.step, got.task, got.container] if got else []) == names


def test_a_group_is_named_by_number_or_by_sluid() -> None:
    """The one that stands there is the job's key, and it is known which it is."""
    by_number, by_sluid = job_of(f"{STEPD}/job_402/step_0"), job_of(f"{STEPD}/{SLUID}/step_0")
    assert by_number
    assert (by_number.number, by_number.sluid) == ("402", "")
    assert by_sluid
    assert (by_sluid.number, by_sluid.sluid) == ("", SLUID)
    assert (CgroupJob(kind="container", job="a1").sluid, CgroupJob(kind="kubernetes", job="12").number) == ("", "")


@given(before=SEGMENTS, after=SEGMENTS)
def test_what_lies_around_a_job_does_not_change_it(before: list[str], after: list[str]) -> None:
    """Slices above and groups below a step leave its job as it is."""
    path = "/".join(["", *before, "slurmstepd.scope", "job_402", "step_0", *after])
    job = job_of(f"0::{path}\n")
    assert job
    assert (job.kind, job.job, job.step) == ("slurm", "402", "0")


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    """Whatever stands there is a job or none."""
    job = job_of(text)
    assert job is None or job.job


def test_the_real_file_of_this_process_is_read() -> None:
    """The kernel's own text for this process does not raise, wherever the suite runs."""
    text = ProcFolder().cgroup(os.getpid())
    assert text.count(":") >= 2
    assert job_of(text) is None or job_of(text) == job_of(text + "\n")
