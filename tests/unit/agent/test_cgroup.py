"""Control groups as the schedulers name them."""

from __future__ import annotations

import pytest

from peakgate.agent.cgroup import CgroupJob, job_of

ID = "a" * 12 + "0123456789abcdef" * 3 + "beef"
SHORT = ID[:12]
POD = "1843d150-0a1b-4c2d-8e3f-001122334455"
POD_SYSTEMD = POD.replace("-", "_")
STATIC_POD = "0123456789abcdef" * 2
SLUID = "sEKNKTV3WPV500"

# Names as Slurm's cgroup plugins (v1, v2, 26.05), the kubelet's two drivers, docker and podman write them.
VECTORS = {
    "slurm v1": ("11:memory:/slurm/uid_1000/job_402/step_0/task_1\n1:name=systemd:/", CgroupJob(kind="slurm", job="402", step="0")),
    "slurm v1, several slurmd": ("11:memory:/slurm_node7/uid_1000/job_402/step_batch", CgroupJob(kind="slurm", job="402", step="batch")),
    "slurm v2": ("0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0", CgroupJob(kind="slurm", job="123", step="0")),
    "slurm v2, several slurmd": (
        "0::/system.slice/node7_slurmstepd.scope/job_123/step_extern/user/task_0",
        CgroupJob(kind="slurm", job="123", step="extern"),
    ),
    "slurm 26.05": (f"0::/system.slice/slurmstepd.scope/{SLUID}/step_0/user/task_0", CgroupJob(kind="slurm", job=SLUID, step="0")),
    "slurm's own process": ("0::/system.slice/slurmstepd.scope/system", None),
    "podman inside slurm": (
        f"0::/system.slice/slurmstepd.scope/job_9/step_0/user/task_0/libpod-{ID}.scope",
        CgroupJob(kind="slurm", job="9", step="0"),
    ),
    "pod, systemd driver": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD_SYSTEMD}.slice/cri-containerd-{ID}.scope",
        CgroupJob(kind="kubernetes", job=POD, container=SHORT),
    ),
    "pod, cgroupfs driver": (f"9:memory:/kubepods/burstable/pod{POD}/{ID}", CgroupJob(kind="kubernetes", job=POD, container=SHORT)),
    "static pod": (
        f"0::/kubepods.slice/kubepods-pod{STATIC_POD}.slice/crio-{ID}.scope",
        CgroupJob(kind="kubernetes", job=STATIC_POD, container=SHORT),
    ),
    "docker, systemd": (f"0::/system.slice/docker-{ID}.scope", CgroupJob(kind="container", job=SHORT, container=SHORT)),
    "docker, cgroupfs": (f"5:devices:/docker/{ID}", CgroupJob(kind="container", job=SHORT, container=SHORT)),
    "another cgroup namespace": ("0::/../../user.slice/user-1000.slice/session-3.scope", None),
    "a user's session": ("0::/user.slice/user-1000.slice/session-3.scope", None),
    "no text": ("", None),
    "no path": ("garbage\n12:memory\n", None),
    "slurm in the second line": ("12:cpuset:/\n11:memory:/slurm/uid_0/job_7\n", CgroupJob(kind="slurm", job="7")),
    "a letter that Crockford's base 32 lacks": ("0::/system.slice/slurmstepd.scope/sEKNKTV3WPVU00/step_0", None),
}


@pytest.mark.parametrize(("text", "want"), VECTORS.values(), ids=VECTORS.keys())
def test_the_job_of_a_control_group(text: str, want: CgroupJob | None) -> None:
    """Each scheduler's names give its job; a process outside all of them gives none."""
    assert job_of(text) == want
