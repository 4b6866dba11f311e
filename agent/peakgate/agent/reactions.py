"""What the agent does when an NVML call fails: one row a code. The meanings are those of nvmlReturn_t in nvml.h."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from peakgate.agent import nvml_codes as nvml


class Reaction(StrEnum):
    """What follows from a failed call. In none of them has a process ended because it could not be read."""

    gap = "gap"
    """Nothing is known of this moment; the next turn reads again."""
    never_again = "never again"
    """This device does not have this function."""
    older_call = "older call"
    """This driver has an older version of the function, or none."""
    once_more = "once more"
    """Called again at once, a single time."""
    gpu_gone = "gpu gone"
    """This GPU is lost, the others are not; it is looked for at each look around."""
    reopen = "reopen"
    """NVML is to be opened again in this process."""
    no_driver = "no driver"
    """There is nothing to watch; NVML is opened again with growing waits."""
    new_process = "new process"
    """The library that is mapped here never fits the driver again: only another process can load the new one."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table. `remedy` is for the person who runs the node; empty: there is nothing to do."""

    reaction: Reaction
    remedy: str = ""


_MOUNT = "Run the agent as a user that may open /dev/nvidia* (under MIG also the capability files below /dev/nvidia-caps)"
_DEVICES = "Let the agent's control group open /dev/nvidia* (DeviceAllow, NVIDIA_VISIBLE_DEVICES=all); see dmesg for the driver's own words"
_LOST = "Drain the node and reset the GPU: nvidia-smi --gpu-reset"

RULES = {
    nvml.UNINITIALIZED: Rule(Reaction.reopen),
    nvml.NOT_SUPPORTED: Rule(Reaction.never_again),
    nvml.NO_PERMISSION: Rule(Reaction.gap, _MOUNT),
    nvml.INSUFFICIENT_SIZE: Rule(Reaction.once_more),
    nvml.DRIVER_NOT_LOADED: Rule(Reaction.no_driver, "Load the NVIDIA driver: modprobe nvidia, then nvidia-smi"),
    nvml.TIMEOUT: Rule(Reaction.gap),
    nvml.IRQ_ISSUE: Rule(Reaction.gap, "The GPU's interrupts do not arrive: see dmesg, and the power connectors"),
    nvml.LIBRARY_NOT_FOUND: Rule(Reaction.no_driver, "Install the NVIDIA driver, which brings libnvidia-ml.so.1"),
    nvml.FUNCTION_NOT_FOUND: Rule(Reaction.older_call),
    nvml.GPU_IS_LOST: Rule(Reaction.gpu_gone, _LOST),
    nvml.RESET_REQUIRED: Rule(Reaction.gpu_gone, _LOST),
    nvml.OPERATING_SYSTEM: Rule(Reaction.gap, _DEVICES),
    nvml.LIB_RM_VERSION_MISMATCH: Rule(Reaction.new_process),
    nvml.ARGUMENT_VERSION_MISMATCH: Rule(Reaction.older_call),
    nvml.NOT_READY: Rule(Reaction.gap),
    nvml.UNKNOWN: Rule(Reaction.gap),
}

WHOLE_NODE = frozenset({Reaction.reopen, Reaction.no_driver, Reaction.new_process})
"""What is not about one GPU: the watch of all of them stops here and begins anew."""


def rule_of(code: int) -> Rule:
    """The row of a code; one that is not in the table is a gap."""
    return RULES.get(code, RULES[nvml.UNKNOWN])
