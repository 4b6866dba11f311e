"""Which drop-in file is of a process's job."""

from __future__ import annotations

import pytest
from tests.unit.agent.cgroup_vectors import SLUID

from peakgate.agent.cgroup import CgroupJob
from peakgate.agent.drop_ins import believed
from peakgate.agent.jobs_folder import JobFile

OTHER_SLUID = "sEKNKTV3WPV501"
BY_NUMBER = CgroupJob(kind="slurm", job="402")
BY_SLUID = CgroupJob(kind="slurm", job=SLUID)
POD = CgroupJob(kind="kubernetes", job="1843d150-0a1b-4c2d-8e3f-001122334455")
OURS, LEFT_OVER = JobFile(job="402"), JobFile(job="401")
ANNS, BOBS = JobFile(job="402", uid=1000), JobFile(job="403", uid=2000)


@pytest.mark.parametrize(
    ("files", "cgroup", "number", "want"),
    [
        ([], BY_NUMBER, "", None),
        ([OURS], BY_NUMBER, "", OURS),
        ([LEFT_OVER], BY_NUMBER, "", None),
        ([JobFile(job="402_7")], BY_NUMBER, "", JobFile(job="402_7")),
        ([OURS, LEFT_OVER], BY_NUMBER, "", OURS),
        ([BOBS, ANNS], BY_NUMBER, "", ANNS),
        ([JobFile(job="402", uid=77)], BY_NUMBER, "", JobFile(job="402", uid=77)),
        ([JobFile(job="402", sluid=SLUID)], BY_SLUID, "", JobFile(job="402", sluid=SLUID)),
        ([JobFile(job="402", sluid=OTHER_SLUID)], BY_SLUID, "402", None),
        ([OURS], BY_SLUID, "402", OURS),
        ([LEFT_OVER], BY_SLUID, "402", None),
        ([OURS], BY_SLUID, "", OURS),
        ([OURS, BOBS], BY_SLUID, "", OURS),
        ([OURS, LEFT_OVER], BY_SLUID, "", None),
        ([OURS], POD, "", OURS),
        ([OURS], None, "", OURS),
        ([OURS, LEFT_OVER], None, "", None),
        ([ANNS, BOBS], None, "", ANNS),
        ([BOBS], None, "", None),
        ([BOBS], POD, "", None),
    ],
)
def test_the_file_that_is_believed(files: list[JobFile], cgroup: CgroupJob | None, number: str, want: JobFile | None) -> None:
    """The kernel's word decides; where it is silent, the user and there being only one; otherwise nobody's file is taken."""
    assert believed(files, cgroup=cgroup, number=number, uid=1000) == want


def test_a_user_who_is_not_known_contradicts_nothing() -> None:
    """A process whose owner cannot be read may be of the file's job."""
    assert believed([BOBS], cgroup=None, number="", uid=-1) == BOBS
