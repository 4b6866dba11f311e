"""The memory model: a job in, the peaks of its worst GPU out. Pure: no I/O, no protobuf, no clock."""

from typing import Final

MODEL_VERSION: Final = "1"
"""Changes when a figure of the model changes; stored with every prediction."""
