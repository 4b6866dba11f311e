"""Every block and every kernel by name: the shared ones, those of the model families and those of the frameworks' profiles."""

from __future__ import annotations

from peakgate.memory import context_parallel, families, kernel_table, profiles

BLOCKS = families.BLOCKS | profiles.BLOCKS

KERNELS = kernel_table.KERNELS | profiles.KERNELS | context_parallel.KERNELS
