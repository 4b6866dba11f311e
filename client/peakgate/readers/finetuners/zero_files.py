"""DeepSpeed configs that trainers bring along, for launches whose folder does not hold them: what each says of memory.

Sources: axolotl deepspeed_configs/*.json at 067b021c (July 2026); LLaMA-Factory examples/deepspeed/*.json at ff6d4d12 (August 2026);
ms-swift swift/config/*.json at 3602360a (August 2026), where `zero2` alone names a file. Precision is `auto` in all but Axolotl's
`…_bf16…`.
"""

from __future__ import annotations

from peakgate.readers.place import JSON, Place, Stated
from peakgate.readers.settings import Settings

_ZERO = {
    "bf16": "bf16.enabled",
    "optimizer": "zero_optimization.offload_optimizer.device",
    "parameters": "zero_optimization.offload_param.device",
    "reduce": "zero_optimization.reduce_bucket_size",
    "gather": "zero_optimization.allgather_bucket_size",
    "overlap": "zero_optimization.overlap_comm",
    "contiguous": "zero_optimization.contiguous_gradients",
    "live": "zero_optimization.max_live_parameters",
    "save": "zero_optimization.gather_16bit_weights_on_model_save",
}


def _file(**zero: object) -> Settings:
    values = {_ZERO.get(key, f"zero_optimization.{key}"): value for key, value in zero.items()}
    return Settings({key: Stated(value, Place(kind=JSON, key=key)) for key, value in values.items()})


def _third(*, optimizer: str = "none", parameters: str = "none", overlap: bool, live: int, bf16: object = "auto") -> Settings:
    return _file(stage=3, optimizer=optimizer, parameters=parameters, overlap=overlap, contiguous=True, live=live, save=True, bf16=bf16)


AXOLOTL = {
    "zero1.json": _file(stage=1, overlap=True),
    "zero1_torch_compile.json": _file(stage=1, overlap=True),
    "zero2.json": _file(stage=2, optimizer="cpu", contiguous=True, overlap=True),
    "zero2_torch_compile.json": _file(stage=2, optimizer="cpu", contiguous=True, overlap=True),
    "zero3.json": _third(overlap=True, live=0),
    "zero3_bf16.json": _third(overlap=True, live=0, bf16=True),
    "zero3_bf16_cpuoffload_all.json": _third(optimizer="cpu", parameters="cpu", overlap=True, live=0, bf16=True),
    "zero3_bf16_cpuoffload_params.json": _third(parameters="cpu", overlap=True, live=0, bf16=True),
}

_LF_2 = {"reduce": 500_000_000, "gather": 500_000_000, "overlap": False, "contiguous": True}

LLAMA_FACTORY = {
    "ds_z0_config.json": _file(stage=0, **_LF_2),
    "ds_z2_config.json": _file(stage=2, **_LF_2),
    "ds_z2_offload_config.json": _file(stage=2, optimizer="cpu", **_LF_2),
    "ds_z3_config.json": _third(overlap=False, live=1_000_000_000),
    "ds_z3_offload_config.json": _third(optimizer="cpu", parameters="cpu", overlap=False, live=1_000_000_000),
}

_SWIFT_2 = {"reduce": 200_000_000, "gather": 200_000_000, "overlap": False, "contiguous": True}

MS_SWIFT = {
    "zero0": _file(stage=0, **_SWIFT_2),
    "zero1": _file(stage=1, **_SWIFT_2),
    "zero2": _file(stage=2, **_SWIFT_2),
    "zero2_offload": _file(stage=2, optimizer="cpu", **_SWIFT_2),
    "zero3": _third(overlap=False, live=1_000_000_000),
    "zero3_offload": _third(optimizer="cpu", parameters="cpu", overlap=False, live=1_000_000_000),
}
