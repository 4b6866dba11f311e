"""Which job a control group belongs to, from the text of /proc/PID/cgroup.

Sources of the names: Slurm's src/plugins/cgroup/{v1/xcgroup.c,v2/cgroup_v2.c}, log_build_step_id_str in src/common/log.c and sluid.h
(26.11-dev 284c3b9); the kubelet's pkg/kubelet/cm/cgroup_manager_linux.go for both drivers; containerd, CRI-O, docker and podman.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# CgroupSlice and the prefix of several slurmd on one node are the site's; a step is a number, batch, extern, interactive or TBD,
# and 0+1 in a heterogeneous job.
_STEP = r"(?:/step_(?P<step>[A-Za-z]+|\d+(?:\+\d+)?)(?:/(?:user/)?task_(?P<task>\d+|special))?(?=/|$))?"
SLUID = r"s[0-9A-HJKMNP-TV-Z]{13}"
SLURM_V1 = re.compile(r"/slurm(?:_[^/]+)?/uid_\d+/job_(?P<job>\d+)(?=/|$)" + _STEP)
SLURM_V2 = re.compile(rf"/(?:[^/]+_)?slurmstepd\.scope/(?:job_(?P<job>\d+)|(?P<sluid>{SLUID}))(?=/|$)" + _STEP)
POD = re.compile(
    r"(?:^|/|kubepods-(?:[a-z]+-)?)pod(?P<pod>[0-9a-f]{8}([-_])[0-9a-f]{4}(?:\2[0-9a-f]{4}){2}\2[0-9a-f]{12}|[0-9a-f]{32})(?=\.slice|/|$)"
)
CONTAINER = re.compile(r"(?:^|[/:-])(?P<container>[0-9a-f]{64})(?:\.scope)?(?=/|$)")

SHORT_ID_LENGTH = 12
"""How docker and podman print a container id."""
OF_USERS = "/user.slice/"
"""Below it systemd lets a user name groups as he likes: what looks like a scheduler's there is no proof."""
DELETED = " (deleted)"
"""The kernel's mark of a group that was removed under its last process (kernel/cgroup/cgroup.c, proc_cgroup_show)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupJob:
    """What runs in a control group. `kind` is slurm, kubernetes or container; `job` the id that this kind of scheduler knows.

    Slurm 26.05 names groups by SLUID, unique to a run, unless CgroupJobIdPaths is set; older versions by job number: `job` is whichever
    stands there. `task` is Slurm's number of the task on this node. The job of a pod is its uid.
    """

    kind: str
    job: str
    step: str = ""
    task: str = ""
    container: str = ""

    @property
    def sluid(self) -> str:
        """The SLUID, where the group is named by one."""
        return self.job if self.kind == "slurm" and not self.job.isdecimal() else ""

    @property
    def number(self) -> str:
        """Slurm's job number, where the group is named by that."""
        return self.job if self.kind == "slurm" and self.job.isdecimal() else ""


def job_of(text: str) -> CgroupJob | None:
    """The job, or None for a process outside every scheduler. A scheduler wins over a container that it started."""
    paths = [line.split(":", 2)[2].removesuffix(DELETED) for line in text.splitlines() if line.count(":") >= 2]
    for find in (_slurm, _pod, _container):
        for path in paths:
            if job := find(path):
                return job
    return None


def _slurm(path: str) -> CgroupJob | None:
    match = SLURM_V2.search(path) or SLURM_V1.search(path)
    if match is None or _is_of_a_user(path, match):
        return None
    names = match.groupdict("")
    return CgroupJob(kind="slurm", job=names["job"] or names["sluid"], step=names["step"], task=names["task"])


def _pod(path: str) -> CgroupJob | None:
    """The outermost pod, of which the node's kubelet knows: a cluster in a pod (kind, vcluster) has pods inside."""
    match = POD.search(path)
    if match is None or _is_of_a_user(path, match):
        return None
    container = CONTAINER.search(path, match.end())
    return CgroupJob(
        kind="kubernetes", job=match["pod"].replace("_", "-"), container=container["container"][:SHORT_ID_LENGTH] if container else ""
    )


def _container(path: str) -> CgroupJob | None:
    match = CONTAINER.search(path)
    return CgroupJob(kind="container", job=(short := match["container"][:SHORT_ID_LENGTH]), container=short) if match else None


def _is_of_a_user(path: str, match: re.Match[str]) -> bool:
    return OF_USERS in path[: match.start() + 1]
