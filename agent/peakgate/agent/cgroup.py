"""Which job a control group belongs to, from the text of /proc/PID/cgroup.

Sources of the names: Slurm's cgroup plugins v1 and v2 and sluid.h (26.05), the kubelet's systemd and cgroupfs drivers,
containerd, CRI-O, docker and podman.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SLURM_V1 = re.compile(r"/slurm(?:_[^/]+)?/uid_\d+/job_(?P<job>\d+)(?:/step_(?P<step>[^/]+))?")
SLURM_V2 = re.compile(r"/(?:[^/]+_)?slurmstepd\.scope/(?:job_(?P<job>\d+)|(?P<sluid>s[0-9A-HJKMNP-TV-Z]{13}))(?:/step_(?P<step>[^/]+))?")
POD = re.compile(r"pod(?P<pod>[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:[./]|$)")
CONTAINER = re.compile(r"(?:^|[/-])(?P<container>[0-9a-f]{64})(?:\.scope)?(?:/|$)")

SHORT_ID_LENGTH = 12
"""How docker and podman print a container id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupJob:
    """What runs in a control group. `kind` is slurm, kubernetes or container; `job` the id that this kind of scheduler knows.

    Slurm 26.05 names groups by SLUID, unique to a run; older versions by job number. The job of a pod is its uid.
    """

    kind: str
    job: str
    step: str = ""
    container: str = ""


def job_of(text: str) -> CgroupJob | None:
    """The job, or None for a process outside every scheduler. A scheduler wins over a container that it started."""
    paths = [line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2]
    for find in (_slurm, _pod, _container):
        for path in paths:
            if job := find(path):
                return job
    return None


def _slurm(path: str) -> CgroupJob | None:
    if match := SLURM_V2.search(path):
        return CgroupJob(kind="slurm", job=match["job"] or match["sluid"], step=match["step"] or "")
    if match := SLURM_V1.search(path):
        return CgroupJob(kind="slurm", job=match["job"], step=match["step"] or "")
    return None


def _pod(path: str) -> CgroupJob | None:
    if not (match := POD.search(path)):
        return None
    container = CONTAINER.search(path)
    return CgroupJob(
        kind="kubernetes", job=match["pod"].replace("_", "-"), container=container["container"][:SHORT_ID_LENGTH] if container else ""
    )


def _container(path: str) -> CgroupJob | None:
    match = CONTAINER.search(path)
    return CgroupJob(kind="container", job=(short := match["container"][:SHORT_ID_LENGTH]), container=short) if match else None
