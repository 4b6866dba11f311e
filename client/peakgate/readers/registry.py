"""The formats, in the order in which they are asked: what is recognised by a launcher or a key of its own before what only looks alike."""

from __future__ import annotations

from peakgate.readers.deepspeed import DeepSpeed
from peakgate.readers.huggingface import HuggingFace
from peakgate.readers.launch import Reader
from peakgate.readers.plain import Plain
from peakgate.readers.trl import Trl

READERS: tuple[Reader, ...] = (
    Trl(),
    HuggingFace(),
    DeepSpeed(),
    Plain(),
)
