"""How many parameters a checkpoint's folder holds, from the headers of its safetensors files: no weight is read.

A file begins with the length of its header, 8 bytes, little-endian, and the header, which is JSON: tensor -> dtype, shape, offsets
(huggingface/safetensors README.md, "Format").
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

INDEX = "model.safetensors.index.json"
LENGTH_BYTES = 8
LARGEST_HEADER_BYTES = 16 << 20
"""A tensor takes some 150 bytes of a header; the format itself allows 100 MB."""
LARGEST_INDEX_BYTES = 64 << 20
"""An entry of the index takes some 100 bytes. DeepSeek-V3's 58 layers of 256 experts of three matrices are 45,000 of them, and the scales
of its 8 bits as many again."""
MOST_FILES = 1000
"""DeepSeek-V3 has 163."""

HEADS = ("lm_head.weight", "embed_out.weight", "output.weight")
"""A head, which files may hold beside the table of words that it is tied to (Qwen3-0.6B does)."""

FLOATS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")
"""Types of weights; others are masks, positions, and the packed weights of a quantised checkpoint."""

TOLERANCE_RATIO = 0.01
"""Poolers, classifiers and buffers stay below it (bert-base-uncased: 0.5 %), another number of layers does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Elements of all weights, and of those the head's."""

    parameters: int
    head: int = 0

    def agrees(self, parameters: int) -> bool:
        """Whether a model of so many parameters may be the one in the files."""
        return any(abs(parameters - own) <= TOLERANCE_RATIO * own for own in (self.parameters, self.parameters - self.head))


def warn(answer: PredictResponse, job: TrainingJob, counted: Counted | None) -> None:
    """Adds a warning to the answer when the model that was counted is not the one in the files. Adapters are in no checkpoint."""
    adapters = answer.model.trainable_parameters if job.HasField("lora") else 0
    parameters = answer.model.parameters - adapters
    if counted is not None and parameters > 0 and not counted.agrees(parameters):
        answer.warnings.append(
            f"model.hf_config: config.json describes {parameters:,} parameters, and the safetensors files beside it hold "
            f"{counted.parameters:,}: one of them is another model's"
        )


def count_of(folder: Path) -> Counted | None:
    """What the safetensors files of a folder hold; None where there are none, one is missing or broken, or weights are packed."""
    try:
        tensors = [each for file in _files(folder) for each in _tensors(file)]
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    weights = {name: elements for name, dtype, elements in tensors if dtype in FLOATS}
    others = sum(elements for _, dtype, elements in tensors if dtype not in FLOATS)
    total = sum(weights.values())
    if not total or others > TOLERANCE_RATIO * total:
        return None
    return Counted(parameters=total, head=next((weights[name] for name in HEADS if name in weights), 0))


def _files(folder: Path) -> list[Path]:
    """Those that the index names, else every one of the folder. Raises ValueError for more than a checkpoint has, or a name elsewhere."""
    index = folder / INDEX
    if index.is_file():
        with index.open("rb") as file:
            names = sorted({str(each) for each in _mapping(_json(file, LARGEST_INDEX_BYTES).get("weight_map")).values()})
        if any(Path(name).name != name for name in names):
            raise ValueError("a weight lies outside the folder")
        files = [folder / name for name in names]
    else:
        files = sorted(each for each in folder.glob("*.safetensors") if each.is_file())
    if len(files) > MOST_FILES:
        raise ValueError("too many files")
    return files


def _tensors(path: Path) -> Iterator[tuple[str, str, int]]:
    """(name, dtype, elements) of a file, without the stored causal masks of GPT-2 and GPT-NeoX, which are 1 × 1 × n × n."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if not 0 < length <= LARGEST_HEADER_BYTES:
            raise ValueError("no header of a safetensors file")
        header = _json(file, length)
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        shape = _mapping(tensor).get("shape")
        if not isinstance(shape, list) or not all(isinstance(size, int) and size >= 0 for size in shape):
            raise ValueError("a tensor without a shape")
        if len(shape) == 4 and shape[:2] == [1, 1] and shape[2] == shape[3]:
            continue
        yield name, str(_mapping(tensor).get("dtype")), math.prod(shape)


def _json(file: BinaryIO, most_bytes: int) -> Mapping[str, object]:
    return _mapping(json.loads(file.read(most_bytes)))


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError("no mapping")
    return value
