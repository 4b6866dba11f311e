"""Words and figures of Slurm's accounting (man sacct, "Job accounting fields"; data_parser/*/parsers.c for --json)."""

from __future__ import annotations

import re
from datetime import datetime

GPU_MEMORY = "gres/gpumem"
"""The highest memory of one task, summed over the GPUs that it used (gpu_nvml.c: gpu_p_usage_read), as often as
JobAcctGatherFrequency says; not known on MIG."""

EVENT_OF_STATE = {
    "COMPLETED": "finished",
    "FAILED": "failed",
    "NODE_FAIL": "failed",
    "BOOT_FAIL": "failed",
    "OUT_OF_MEMORY": "failed",  # of the node's RAM, by the cgroup: not of a GPU
    "TIMEOUT": "cancelled",
    "DEADLINE": "cancelled",
    "CANCELLED": "cancelled",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
}
"""State to event. Others, such as RUNNING and REQUEUED, are no end."""

FIGURE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


def event_of(state: str) -> str:
    """The event of a state such as `CANCELLED by 1000`; empty while the job has not ended."""
    words = state.split()
    return EVENT_OF_STATE.get(words[0].rstrip("+") if words else "", "")


def bytes_of(figure: str) -> int:
    """`38888M` or `4G` or plain bytes; powers of 1024 (slurm's convert_num_unit). Raises ValueError for anything else."""
    found = FIGURE.fullmatch(figure.strip())
    if not found:
        raise ValueError(f"{figure[:40]!r} is no amount of memory")
    return int(float(found[1]) * 1024 ** POWERS[found[2]])


def tres_of(text: str) -> dict[str, str]:
    """`cpu=8,gres/gpu=2` as a dict."""
    return {name: value for name, separator, value in (part.partition("=") for part in text.split(",")) if separator}


def gpus_of(tres: dict[str, str]) -> int:
    """Allocated GPUs; 0 when it is not said. Without the plain count the typed ones are added up (`gres/gpu:a100=4`)."""
    typed = sum(int(value) for name, value in tres.items() if name.startswith("gres/gpu:") and value.isdigit())
    plain = tres.get("gres/gpu", "")
    return int(plain) if plain.isdigit() else typed


def moment_of(text: str) -> float:
    """Seconds since the epoch; 0: none. sacct writes the local time of the machine, or with SLURM_TIME_FORMAT=%s a number."""
    if text.isdigit():
        return float(text)
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        return 0.0


def exit_of(text: str) -> tuple[int | None, int | None]:
    """(exit code, signal) of `0:9`."""
    code, _, signal = text.partition(":")
    return (int(code) if code.isdigit() else None), (int(signal) if signal.isdigit() and int(signal) else None)
