"""Numbers of nvml.h: what calls return, and events."""

from __future__ import annotations

# Codes of nvmlReturn_t, in nvml.h. What the agent does about each is in reactions.py.
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
IRQ_ISSUE = 11
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
LIB_RM_VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
NOT_READY = 27
UNKNOWN = 999

NO_SLOT_CODES = frozenset({INVALID_ARGUMENT, NOT_FOUND})
"""What an empty MIG slot answers, and an instance that was destroyed."""

# Event types, in nvml.h.
XID_EVENT = 0x8
MIG_CONFIG_EVENT = 0x100
GPU_UNAVAILABLE_EVENT = 0x4000

NOT_AVAILABLE = 2**64 - 1
"""NVML_VALUE_NOT_AVAILABLE of nvml.h, as an unsigned long long."""
NO_INSTANCE = 2**32 - 1
"""The instance ids of an event outside MIG mode (nvmlEventData_t in nvml.h)."""
