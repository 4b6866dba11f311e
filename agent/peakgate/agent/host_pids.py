"""Whether the pids that NVML lists are those of /proc here.

In a container without the host's pid namespace they are not, and a pid that is found all the same may be another process: newer drivers
convert pids to the caller's namespace, older ones do not (open-gpu-kernel-modules, _gpuConvertPid).
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from peakgate.agent.proc import ProcessId, ProcFolder

REASON = "NVML lists processes that /proc does not show: this agent does not see the machine's own pids"
REMEDY = "run it on the host, or with the host's pid namespace (hostPID: true, docker run --pid=host)"
CHECKED_LISTS = 20
"""Lists of processes after which the check is over: a node with jobs shows within seconds what is wrong."""

log = structlog.get_logger("peakgate.agent.host_pids")


class HostPids:
    """Looks at the first lists. A pid that two lists in a row of one GPU have and /proc has not is no accident.

    In the machine's own namespace it is one all the same: a process that is gone and that the driver has not let go of.
    """

    def __init__(self, *, proc: ProcFolder) -> None:
        self._lists_left = 0 if proc.sees_the_machine() else CHECKED_LISTS
        self._missing: dict[str, set[int]] = {}
        self.refused = ""
        """Why no process is attributed; empty while all is well."""

    def look(self, gpu_uuid: str, processes: Iterable[ProcessId]) -> None:
        """Takes a list; a process without a start time is one that /proc does not show."""
        if self.refused or not self._lists_left:
            return
        listed = list(processes)
        self._lists_left -= bool(listed)
        missing = {process.pid for process in listed if not process.start_ticks}
        if missing & self._missing.get(gpu_uuid, set()):
            self.refused = REASON
            log.error("no process is attributed", reason=REASON, remedy=REMEDY, gpu=gpu_uuid, pids=sorted(missing))
        self._missing[gpu_uuid] = missing
