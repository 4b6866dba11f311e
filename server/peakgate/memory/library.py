"""Every block by name: those of the model families and those of the frameworks' profiles."""

from __future__ import annotations

from peakgate.memory import families, profiles

BLOCKS = families.BLOCKS | profiles.BLOCKS
