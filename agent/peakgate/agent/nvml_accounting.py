"""The driver's own account of a process: the exact maximum of its memory, kept also after its end.

Source: nvmlDeviceGetAccountingStats in nvml.h. A driver accounts where an administrator has switched it on (nvidia-smi
--accounting-mode=1), not under MIG, and forgets the mode when it is unloaded. Whether the maximum holds the CUDA context exactly as the
process lists do, and what it says of MPS clients, has been seen on no card by us.
"""

from __future__ import annotations

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_calls import Calls
from peakgate.agent.nvml_codes import NOT_AVAILABLE, NOT_FOUND
from peakgate.agent.nvml_module import AccountingStats, NvmlModule
from peakgate.agent.reactions import Reaction
from peakgate.agent.samples import Accounted

ENABLED = 1


class Accounting:
    """Accounting of a GPU by its handle. Raises NvmlError."""

    def __init__(self, *, calls: Calls, module: NvmlModule) -> None:
        self._calls = calls
        self._module = module
        newest = getattr(module, "nvmlDeviceGetAccountingStats_v2", None)  # only newer versions of nvidia-ml-py have it
        self._stats = [*([newest] if newest else []), module.nvmlDeviceGetAccountingStats]

    def is_on(self, uuid: str, handle: object) -> bool:
        """Whether the driver accounts on this GPU."""
        return self._calls.newest((self._module.nvmlDeviceGetAccountingMode,), uuid, handle) == ENABLED

    def switch_on(self, uuid: str, handle: object) -> None:
        """Needs root. A GPU that does not know accounting is left alone."""
        self._calls.newest((self._module.nvmlDeviceSetAccountingMode,), uuid, handle, ENABLED)

    def stats(self, uuid: str, handle: object, pid: int) -> Accounted | None:
        """What the driver has on a process; None: nothing (yet)."""
        for function in self._stats:
            try:
                return _accounted(pid, self._calls.call(function, uuid, handle, pid))
            except NvmlError as error:
                if error.code == NOT_FOUND or error.reaction is Reaction.never_again:  # the latter also while the mode is off
                    return None
                if error.reaction is not Reaction.older_call:
                    raise
        return None


def _accounted(pid: int, stats: AccountingStats) -> Accounted | None:
    if stats.maxMemoryUsage is None or stats.maxMemoryUsage == NOT_AVAILABLE:
        return None
    return Accounted(pid=pid, peak_bytes=stats.maxMemoryUsage, start_time=stats.startTime / 1e6, is_running=bool(stats.isRunning))
