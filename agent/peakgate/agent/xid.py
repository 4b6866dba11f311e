"""Xid errors that are the hardware's: a job that ended under one says nothing about its memory.

Source: NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid Catalog", Ampere and newer), read in
November 2026. A number is here when the catalogue's immediate action is about the GPU or the node (reset, restart, check the mechanics,
the NVLink and double-bit workflows) or its description names failing memory or links. Not here, because the catalogue calls them faults
of the program or cleaning up after one: 13 (graphics engine exception, mostly an index out of bounds), 31 (page fault), 43 (the program
must end, the GPU is healthy), 45 (cleaning up after an abort, Ctrl-C and kill included), 69, 80, 137; nor what is only news: 63 (rows
remapped), 66, 154 (the recovery that another Xid asks for), 162–165 (power smoothing).
"""

from __future__ import annotations

HARDWARE_XIDS = {
    32: "corrupted push buffer: quality of the PCI link, not the program",
    38: "driver firmware error",
    46: "GPU stopped processing; needs a reset",
    48: "double-bit ECC error",
    54: "auxiliary power not connected",
    62: "internal micro-controller halt",
    64: "row remapping failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    92: "high rate of single-bit ECC errors",
    94: "contained memory error",
    95: "uncontained memory error",
    109: "context switch timed out; needs a reset",
    110: "security fault",
    119: "GSP did not answer",
    120: "GSP error",
    136: "NVLink training failed",
    140: "unrecovered ECC error",
    143: "GPU could not be initialised",
    144: "NVLink 5 error, SAW",
    145: "NVLink 5 error, RLW",
    146: "NVLink 5 error, TLW",
    147: "NVLink 5 error, TREX",
    148: "NVLink 5 error, NVLPW_CTRL",
    149: "NVLink 5 error, NETIR",
    150: "NVLink 5 error, MSE",
    156: "resource retired; needs a reset",
    157: "resource retirement failed",
    158: "GPU fatal timeout",
    167: "fatal timeout of PCIe",
    168: "errors in the write-protected region",
    169: "internal micro-controller halt (SEC2)",
    171: "uncorrectable DRAM error (with 48)",
    172: "uncorrectable SRAM error (with 48)",
}


def is_hardware(xid: int) -> bool:
    """Whether the error is the hardware's. One that is not known counts as the program's, and its number stays on the row."""
    return xid in HARDWARE_XIDS
