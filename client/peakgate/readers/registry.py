"""The formats, in the order in which they are asked: what is recognised by a launcher or a key of its own before what only looks alike."""

from __future__ import annotations

from peakgate.readers.composer import Composer
from peakgate.readers.launch import Reader
from peakgate.readers.litgpt import Litgpt
from peakgate.readers.torchtitan import Torchtitan
from peakgate.readers.torchtune import Torchtune

READERS: tuple[Reader, ...] = (
    Torchtitan(),
    Torchtune(),
    Litgpt(),
    Composer(),
)
