"""The formats, in the order in which they are asked: what is recognised by a launcher or a key of its own before what only looks alike."""

from __future__ import annotations

from peakgate.readers.axolotl import Axolotl
from peakgate.readers.composer import Composer
from peakgate.readers.deepspeed import DeepSpeed
from peakgate.readers.huggingface import HuggingFace
from peakgate.readers.launch import Reader
from peakgate.readers.litgpt import Litgpt
from peakgate.readers.llamafactory import LlamaFactory
from peakgate.readers.megatron import MegatronReader
from peakgate.readers.megatron_bridge import MegatronBridgeReader
from peakgate.readers.ms_swift import MsSwift
from peakgate.readers.nemo import NemoReader
from peakgate.readers.openrlhf import OpenRlhf
from peakgate.readers.plain import Plain
from peakgate.readers.stated import StatedReader
from peakgate.readers.torchtitan import Torchtitan
from peakgate.readers.torchtune import Torchtune
from peakgate.readers.trl import Trl
from peakgate.readers.verl import Verl

READERS: tuple[Reader, ...] = (
    MegatronReader(),
    Torchtitan(),
    Torchtune(),
    Litgpt(),
    Composer(),
    MegatronBridgeReader(),
    NemoReader(),
    Axolotl(),
    LlamaFactory(),
    MsSwift(),
    Verl(),
    OpenRlhf(),
    Trl(),
    HuggingFace(),
    DeepSpeed(),
    Plain(),
    StatedReader(),  # the last: whatever says its model in the document's own words
)
