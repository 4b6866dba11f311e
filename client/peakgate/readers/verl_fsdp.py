"""verl's FSDP engine: weights are float32 shards that compute in bfloat16 unless `model_dtype` says otherwise.

Sources: verl trainer/config/engine/fsdp.yaml (model_dtype fp32 for what is trained), workers/fsdp_workers.py (mixed precision bf16 over
float32 shards; `param_offload` and `optimizer_offload` move states between the phases and are back in the update, `offload_policy` keeps
them on the host throughout), utils/fsdp_utils.py.
"""

from __future__ import annotations

from peakgate.readers.convert import always, flag
from peakgate.readers.finetuners.liger import state_liger
from peakgate.readers.finetuners.ranks import state_lora
from peakgate.readers.finetuners.values import count, not_counted, off, on, say, say_or_default
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

OWN = "verl (trainer/config)"
DTYPES = {"fp32": "fsdp-bf16", "float32": "fsdp-bf16", "bf16": "bf16", "bfloat16": "bf16"}

ENGINE = (
    Row("reshard_after_forward", "framework.fsdp.reshard_after_forward", flag),
    Row("offload_policy", "offload.parameters", always("cpu")),
    Row("offload_policy", "offload.optimizer", always("cpu")),
)


def state_engine(settings: Settings, reading: Reading, *, strategy: str, world: int, version: int) -> None:
    """FSDP over all GPUs, or in groups of `fsdp_size`. `settings`: the engine's section; `version` when nothing is said."""
    size, kind = settings("fsdp_size"), settings("strategy")
    if size is not None and 0 < count(size) < (world or 1 << 30) and world:
        say(reading, "parallelism.sharding", "hsdp" if count(size) > 1 else "ddp", size)
        say(reading, "parallelism.shard_degree", count(size), size)
    else:
        reading.default("parallelism.sharding", "fsdp", OWN)
    word = strategy or (kind.text if kind is not None else "")
    reading.default("framework.fsdp.version", 2 if word == "fsdp2" else 1 if word == "fsdp" else version, OWN)
    dtype = settings("model_dtype")
    recipe = DTYPES.get(dtype.text.lower(), "") if dtype is not None else "fsdp-bf16"
    if not recipe and dtype is not None:
        reading.cannot_say(f"model_dtype {dtype.text[:20]}", dtype.place)
    else:
        say_or_default(reading, "precision.recipe", recipe, dtype, f"{OWN}/engine/fsdp.yaml: model_dtype")
    apply(ENGINE, settings, reading)


def state_module(settings: Settings, reading: Reading, *, loss: bool) -> None:
    """Checkpointing, kernels and adapters of a model's section. `loss`: whether Liger's fused loss is in use."""
    stated = settings("enable_gradient_checkpointing")
    say_or_default(reading, "checkpointing.mode", "none" if off(stated) else "full", stated, f"{OWN}/model/hf_model.yaml")
    if not off(stated):
        reading.default("checkpointing.reentrant", False, "verl (workers/fsdp_workers.py: use_reentrant)")
    if (moved := settings("enable_activation_offload")) is not None and on(moved):
        say(reading, "offload.activations", "cpu", moved)
    if (liger := settings("use_liger")) is not None and on(liger):
        state_liger(liger, reading)
        if not loss:
            reading.fields.pop("loss.implementation")
    if (fused := settings("use_fused_kernels")) is not None and on(fused):
        say(reading, "loss.implementation", "fused", fused)
    reading.default("optimizer.name", "adamw", f"{OWN}/optim/fsdp.yaml")
    reading.default("optimizer.implementation", "foreach", f"{OWN}/optim/fsdp.yaml: torch.optim.AdamW")
    not_counted(("tiled_mlp.enabled", "mtp.enable_train", "lora_adapter_path"), settings, reading)
    state_lora(settings, reading, f"{OWN}/model/hf_model.yaml")


def state_optimizer(settings: Settings, reading: Reading) -> None:
    """Another optimizer than AdamW (workers/config/optimizer.py: optimizer_impl is a module, optimizer a class of it)."""
    named = settings("optimizer")
    if named is None:
        return
    known = {
        "adamw": "adamw",
        "adam": "adam",
        "sgd": "sgd",
        "adamw8bit": "adamw-8bit",
        "pagedadamw8bit": "paged-adamw-8bit",
        "pagedadamw": "paged-adamw",
    }
    word = named.text.lower()
    if word not in known:
        reading.cannot_say(f"optimizer {named.text[:40]}", named.place)
    else:
        say(reading, "optimizer.name", known[word], named)
