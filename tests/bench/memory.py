"""How much memory this process had at most."""

from __future__ import annotations

from pathlib import Path


def peak_mib() -> float:
    """Its highest resident set (proc(5): VmHWM of status, which begins anew with a program, as ru_maxrss does not)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024
