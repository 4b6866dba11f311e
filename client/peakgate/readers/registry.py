"""The formats, in the order in which they are asked: what is recognised by a launcher or a key of its own before what only looks alike."""

from __future__ import annotations

from peakgate.readers.launch import Reader
from peakgate.readers.megatron import MegatronReader
from peakgate.readers.megatron_bridge import MegatronBridgeReader
from peakgate.readers.nemo import NemoReader

READERS: tuple[Reader, ...] = (
    MegatronReader(),
    MegatronBridgeReader(),
    NemoReader(),
)
