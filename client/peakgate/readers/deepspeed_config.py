"""What a DeepSpeed configuration says, one row each.

Sources: DeepSpeed 0.19 runtime/zero/config.py and offload_config.py (names, earlier names, defaults), runtime/config.py
(_set_batch_related_parameters), runtime/precision_config.py, runtime/engine.py (_configure_basic_optimizer); transformers 5.24
integrations/deepspeed.py (`auto`: filled with the Trainer's arguments, sizes of buckets with the model's width).
"""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.readers.convert import flag, number, one_of, positive, text, whole
from peakgate.readers.named_model import hidden_size
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth

ZERO = "zero_optimization"
DEVICE = one_of({"none": None, "cpu": "cpu", "nvme": "nvme"})

ROWS = (
    Row(f"{ZERO}.offload_optimizer.device", "offload.optimizer", DEVICE),
    Row(f"{ZERO}.offload_param.device", "offload.parameters", DEVICE),
    Row(f"{ZERO}.reduce_bucket_size", "framework.zero.reduce_bucket_size", positive),
    Row(f"{ZERO}.allgather_bucket_size", "framework.zero.allgather_bucket_size", positive),
    Row(f"{ZERO}.overlap_comm", "framework.zero.overlap_comm", flag),
    Row(f"{ZERO}.contiguous_gradients", "framework.zero.contiguous_gradients", flag),
    Row(f"{ZERO}.stage3_max_live_parameters", "framework.zero.max_live_parameters", whole),
    Row(f"{ZERO}.max_live_parameters", "framework.zero.max_live_parameters", whole),
    Row(f"{ZERO}.stage3_prefetch_bucket_size", "framework.zero.prefetch_bucket_size", whole),
    Row(f"{ZERO}.prefetch_bucket_size", "framework.zero.prefetch_bucket_size", whole),
    Row(f"{ZERO}.stage3_param_persistence_threshold", "framework.zero.param_persistence_threshold", whole),
    Row(f"{ZERO}.param_persistence_threshold", "framework.zero.param_persistence_threshold", whole),
    Row(f"{ZERO}.stage3_gather_16bit_weights_on_model_save", "save.full_state_dict", flag),
    Row(f"{ZERO}.stage3_gather_fp16_weights_on_model_save", "save.full_state_dict", flag),
    Row(f"{ZERO}.gather_16bit_weights_on_model_save", "save.full_state_dict", flag),
    Row("tensor_parallel.autotp_size", "parallelism.tensor", positive),
    Row("sequence_parallel_size", "parallelism.context", positive),
    Row("compile.enabled", "framework.compile", flag),
)

CPU_SWITCHES = {"cpu_offload": "offload.optimizer", "cpu_offload_params": "offload.parameters", "cpu_offload_param": "offload.parameters"}
"""Earlier names."""

OPTIMIZERS = {
    "adam": "adam",
    "adamw": "adamw",
    "fusedadam": "adam",
    "lamb": "lamb",
    "lion": "lion",
    "muon": "muon",
    "sgd": "sgd",
    "adafactor": "adafactor",
}

SIZED_BY_WIDTH: Mapping[str, tuple[float, int]] = {
    "reduce_bucket_size": (1, 2),
    "stage3_prefetch_bucket_size": (0.9, 2),
    "stage3_param_persistence_threshold": (10, 1),
}
"""What `auto` comes to: a factor times a power of the model's width (trainer_config_finalize)."""

BEYOND = {
    f"{ZERO}.zero_quantized_weights": "weights that ZeRO++ gathers in 8 bits",
    f"{ZERO}.zero_quantized_nontrainable_weights": "frozen weights that ZeRO++ keeps in 8 bits",
    f"{ZERO}.zero_quantized_gradients": "gradients that ZeRO++ reduces in 4 bits",
    f"{ZERO}.offload_optimizer.super_offload": "SuperOffload",
    f"{ZERO}.zenflow": "ZenFlow",
    "compression_training": "compression in training",
    "quantize_training.enabled": "quantisation in training",
    "hybrid_engine.enabled": "the hybrid engine for generation",
    "elasticity.enabled": "a batch that follows the number of GPUs",
    "sparse_attention": "sparse attention",
    "progressive_layer_drop.enabled": "progressive layer drop",
    "random_ltd.enabled": "tokens dropped at random",
    "data_efficiency.data_routing.random_ltd.enabled": "tokens dropped at random",
    "compile.deepcompile": "DeepCompile",
}
"""Switches, and blocks of which any key is there."""


def read_config(config: Settings, reading: Reading) -> int:
    """States everything but batch, precision and optimizer; returns the stage of ZeRO."""
    config = _sized(config, reading)
    stage = _stage(config, reading)
    apply(ROWS, config, reading)
    for key, path in CPU_SWITCHES.items():
        if place := switched_on(config, f"{ZERO}.{key}"):
            reading.state(path, "cpu", place)
    _beyond(config, reading)
    return stage


def _stage(config: Settings, reading: Reading) -> int:
    """0 is plain data parallelism; a bare `true` is stage 1 (runtime/zero/config.py: read_zero_config_deprecated)."""
    stated = config(f"{ZERO}.stage") or config(ZERO)
    if stated is None:
        return 0
    try:
        stage = int(flag(stated)) if isinstance(stated.value, bool) else whole(stated)
    except ValueError as error:
        reading.warnings.append(f"parallelism.sharding: {stated.text[:40]!r} cannot be read ({stated.place}): {error}")
        return 0
    if not 0 <= stage <= 3:
        reading.warnings.append(f"parallelism.sharding: there is no ZeRO stage {stage} ({stated.place})")
        return 0
    value = f"zero{stage}" if stage else "ddp"
    if stated.place.kind == DEFAULT:
        reading.default("parallelism.sharding", value, stated.place.key)
    else:
        reading.state("parallelism.sharding", value, stated.place)
    return stage


def _sized(config: Settings, reading: Reading) -> Settings:
    """Without what is `auto`, but for what the model's width decides."""
    width = hidden_size(reading)
    out = Settings({path: stated for path, stated in config.leaves.items() if not is_auto(stated)})
    for key, (factor, power) in SIZED_BY_WIDTH.items():
        stated = config(f"{ZERO}.{key}")
        if width and stated is not None and is_auto(stated):
            out.override(f"{ZERO}.{key}", Stated(int(factor * width**power), stated.place))
    return out


def is_auto(stated: Stated | None) -> bool:
    """Whether the Trainer fills the setting in."""
    return stated is not None and stated.text.strip().lower() == "auto"


def _beyond(config: Settings, reading: Reading) -> None:
    for key, what in BEYOND.items():
        inner = config.under(key).leaves
        place = switched_on(config, key) or next((each.place for each in inner.values()), None)
        if place is not None:
            reading.cannot_say(what, place)
    for key, what in (
        (f"{ZERO}.zero_hpz_partition_size", "a second partition of the weights inside a node"),
        (f"{ZERO}.mics_shard_size", "MiCS"),
    ):
        stated = config(key)
        if stated is not None and (text(stated).isdigit() and int(text(stated)[:9]) > 1):
            reading.cannot_say(what, stated.place)
    _partly_offloaded(config, reading)


def _partly_offloaded(config: Settings, reading: Reading) -> None:
    ratio = config(f"{ZERO}.offload_optimizer.ratio")
    try:
        if ratio is not None and number(ratio) < 1:
            reading.cannot_say("a part of the optimizer in the host's memory", ratio.place)
    except ValueError:
        reading.warnings.append(f"offload.optimizer: {ratio.text[:40]!r} is no ratio ({ratio.place})" if ratio else "")


def state_optimizer(config: Settings, reading: Reading) -> bool:
    """DeepSpeed's own optimizer; False when the configuration has none."""
    stated = config("optimizer.type")
    if stated is None:
        return False
    name = OPTIMIZERS.get(stated.text.strip().lower())
    if name is None:
        reading.cannot_say(f"the optimizer {stated.text[:40]}", stated.place)
        return True
    torch_adam = switched_on(config, "optimizer.params.torch_adam")
    if torch_adam is None and name == "adam" and truth(config("optimizer.params.adam_w_mode")) is True:
        name = "adamw"
    reading.state("optimizer.name", name, stated.place)
    if name in ("adam", "adamw", "lamb", "lion"):
        reading.state("optimizer.implementation", "foreach" if torch_adam else "fused", torch_adam or stated.place)
    return True


def state_precision(config: Settings, reading: Reading, *, autocast: str = "", place: Place | None = None) -> str:
    """The recipe, with the Trainer's `autocast` (bf16, fp16 or nothing) for what is `auto` or not there; returns the 16-bit format."""
    found = ""
    for word, keys in {"fp16": ("fp16.enabled",), "bf16": ("bf16.enabled", "bfloat16.enabled")}.items():
        stated = config.first(*keys)
        if stated is not None and (truth(stated) or (is_auto(stated) and autocast == word)):
            found, place = word, stated.place if not is_auto(stated) or place is None else place
    if not found and autocast and not any(truth(config(f"{word}.enabled")) for word in ("fp16", "bf16")):
        found = autocast
    apex = switched_on(config, "amp.enabled", "torch_autocast.enabled")
    if apex and not found:
        dtype = config("torch_autocast.dtype")
        reading.state("precision.recipe", "amp-bf16" if dtype is not None and "bf" in dtype.text.lower() else "amp-fp16", apex)
        return ""
    if found and place is not None:
        reading.state("precision.recipe", f"deepspeed-{found}", place)
        _formats(config, reading)
    elif found:
        reading.default("precision.recipe", f"deepspeed-{found}", "the Trainer's mixed precision")
    return {"bf16": "bfloat16", "fp16": "float16"}.get(found, "")


FLOATS = one_of(
    {"fp32": "float32", "float32": "float32", "bf16": "bfloat16", "bfloat16": "bfloat16", "fp16": "float16", "float16": "float16"}
)


def _formats(config: Settings, reading: Reading) -> None:
    """States that are not as the recipe has them."""
    for word, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
        if place := switched_on(config, f"{word}.{word}_master_weights_and_grads", f"{word}.{word}_master_weights_and_gradients"):
            reading.state("precision.master_weights", dtype, place)
            reading.state("precision.gradients", dtype, place)
    if place := switched_on(config, "bf16.bf16_optimizer_states"):
        reading.state("precision.optimizer_states", "bfloat16", place)
    apply([Row("data_types.grad_accum_dtype", "precision.gradients", FLOATS)], config, reading)
