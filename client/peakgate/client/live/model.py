"""A PyTorch model with its optimizer as a job, for a training loop of one's own."""

from __future__ import annotations

from peakgate.client.live.models import WRAPPERS, dtype_of, is_trained, model_settings, parameters_of, state_frozen, state_model, unwrapped
from peakgate.client.live.optimizers import state_optimizer
from peakgate.client.live.plain import attribute, place, plain
from peakgate.client.live.surroundings import ranks, state_surroundings
from peakgate.readers.mixed_precision import Mixed, state_precision
from peakgate.readers.peft import read_adapters
from peakgate.readers.reading import Reading
from peakgate.readers.trainer import state_attention, state_checkpointing

AUTOCAST = {"bfloat16": "bf16", "float16": "fp16", "bf16": "bf16", "fp16": "fp16"}


def read_model(
    model: object,
    *,
    micro_batch_size: int = 0,
    sequence_length: int = 0,
    gradient_accumulation_steps: int = 0,
    optimizer: object | None = None,
    autocast: object | None = None,
    gpu: str = "",
    world_size: int = 0,
) -> Reading:
    """What the model, its wrappers and its optimizer say, each field with where it comes from. `autocast`: the dtype that the forward pass
    runs under (torch.bfloat16, or a name)."""
    inner, wrappers = unwrapped(model)
    reading = Reading(format="python")
    state_model(inner, reading)
    known = reading.get("model.hf_config") is not None
    reading.default("framework.name", "huggingface" if known else "torch", "a model with a configuration of transformers, or without")
    sizes = {
        "micro_batch_size": micro_batch_size,
        "sequence_length": sequence_length,
        "gradient_accumulation_steps": gradient_accumulation_steps,
    }
    for name, size in sizes.items():
        if size:
            reading.state(f"batch.{name}", size, place(name))
    _state_own(inner, wrappers, model, reading, autocast)
    if optimizer is not None:
        state_optimizer(optimizer, reading)
    state_surroundings(reading, gpu=gpu, world_size=world_size or ranks())
    return reading


def _state_own(inner: object, wrappers: list[str], outer: object, reading: Reading, autocast: object | None) -> None:
    sharding = _state_sharding(inner, wrappers, reading)
    settings = model_settings(inner)
    dtype = dtype_of(each for _, each in parameters_of(inner) if is_trained(each)) if not attribute(inner, "peft_config") else ""
    if not dtype and (configured := settings("dtype")) is not None:
        dtype = str(configured.value)
    word = AUTOCAST.get(str(plain(autocast)), "")
    under = attribute(outer, "mixed_precision.param_dtype") if sharding == "fsdp" else None
    word = word or AUTOCAST.get(str(plain(under)), "")
    if dtype:
        state_precision(Mixed(word, dtype, place("model", "dtype")), reading, sharding=sharding, whose="")
    if "OptimizedModule" in wrappers:
        reading.state("framework.compile", value=True, place=place("model", "torch.compile"))
    state_attention(settings, reading)
    state_checkpointing(settings, reading)
    if read_adapters(settings, reading, dtype=dtype if dtype in ("bfloat16", "float16") else "") is None:
        state_frozen(inner, reading)


def _state_sharding(inner: object, wrappers: list[str], reading: Reading) -> str:
    """By the wrappers' classes; fully_shard renames the class itself."""
    sharding = next((kind for name in wrappers if (kind := WRAPPERS[name])), "")
    if not sharding and type(inner).__name__.startswith("FSDP") and hasattr(inner, "set_reshard_after_forward"):
        reading.state("framework.fsdp.version", 2, place("model", "fully_shard"))
        sharding = "fsdp"
    if sharding:
        reading.state("parallelism.sharding", sharding, place("model", type(inner).__name__ if not wrappers else wrappers[0]))
    if "DeepSpeedEngine" in wrappers:
        reading.cannot_say("a DeepSpeed engine: give its configuration file to `peakgate predict`", place("model", "DeepSpeedEngine"))
    return sharding
