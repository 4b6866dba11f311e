"""torchtitan's settings and the fields that they mean; those that have had other names under the one of today.

Sources: torchtitan config_manager.py of 2024 (sections training, experimental, float8), config/job_config.py at v0.2.2,
components/optimizer.py, components/quantization.
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.readers import convert
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row
from peakgate.readers.settings import Settings
from peakgate.readers.switches import truth

RENAMED = {
    "training.batch_size": "training.local_batch_size",
    "training.max_context_length": "training.seq_len",
    "training.data_parallel_degree": "parallelism.data_parallel_shard_degree",
    "training.data_parallel_shard_degree": "parallelism.data_parallel_shard_degree",
    "training.data_parallel_replicate_degree": "parallelism.data_parallel_replicate_degree",
    "training.tensor_parallel_degree": "parallelism.tensor_parallel_degree",
    "training.compile": "compile.enable",
    "training.enable_loss_parallel": "parallelism.enable_loss_parallel",
    "training.disable_loss_parallel": "parallelism.disable_loss_parallel",
    "checkpoint.enable_checkpoint": "checkpoint.enable",
    "validator.enable": "validation.enable",
    "validator.local_batch_size": "validation.local_batch_size",
}

MOVED = (("experimental.", "parallelism."), ("float8.", "quantize.linear.float8."), ("mx.", "quantize.linear.mx."))
"""Sections whose keys have moved with their names."""

OPTIMIZERS = {"adamw": "adamw", "adam": "adam", "muon": "muon", "sgd": "sgd"}

ROWS = (
    Row("loss.implementation", "loss.implementation", convert.one_of({"chunked": "chunked", "full": None})),
    Row(
        "optimizer.implementation",
        "optimizer.implementation",
        convert.one_of({"fused": "fused", "foreach": "foreach", "for_loop": "for-loop"}),
    ),
    Row("optimizer.early_step_in_backward", "optimizer.in_backward", convert.flag),
    Row("activation_checkpoint.memory_budget", "checkpointing.budget", convert.number),
    Row("training.enable_cpu_offload", "offload.parameters", convert.always("cpu")),
    Row("training.enable_cpu_offload", "offload.optimizer", convert.always("cpu")),
    Row("parallelism.enable_sequence_parallel", "parallelism.sequence_parallel", convert.flag),
    Row("parallelism.expert_parallel_degree", "parallelism.expert", convert.positive),
    Row(
        "parallelism.fsdp_reshard_after_forward",
        "framework.fsdp.reshard_after_forward",
        convert.one_of({"default": None, "always": True, "never": False}),
    ),
    Row(
        "parallelism.context_parallel_rotate_method",
        "parallelism.context_type",
        convert.one_of({"allgather": "all-gather", "alltoall": "ring"}),
    ),
)


def current(settings: Settings) -> Settings:
    """Every setting under the name that holds today."""
    out = Settings()
    for path, stated in settings.leaves.items():
        name = RENAMED.get(path, path)
        for old, new in MOVED:
            if name.startswith(old):
                name = new + name.removeprefix(old)
        out.override(name, stated)
    return out


def switched(settings: Settings, path: str) -> Stated | None:
    """A switch that is on."""
    stated = settings(path)
    return stated if truth(stated) else None


def whole(settings: Settings, key: str, otherwise: int, reading: Reading) -> int:
    """A setting as a whole number; one that is none is a warning."""
    stated = settings(key)
    if stated is None:
        return otherwise
    try:
        return convert.whole(stated)
    except ValueError as error:
        reading.warnings.append(f"{key}: {stated.text[:40]!r} cannot be read ({stated.place}): {error}")
        return otherwise


def read(settings: Settings, reading: Reading) -> None:
    """What more than one setting decides."""
    _optimizer(settings, reading)
    _compile(settings, reading)
    _eight_bits(settings, reading)
    _evaluation(settings, reading)
    for key, what in UNSAID.items():
        if (stated := switched(settings, key)) is not None:
            reading.cannot_say(what, stated.place)
    if reading.get("checkpointing.budget") is not None and settings("activation_checkpoint.mode") is not None:
        _drop_budget(settings, reading)


UNSAID = {
    "fault_tolerance.enable": "fault tolerant replicas (torchft)",
    "parallelism.enable_compiled_autograd": "compiled autograd",
    "parallelism.enable_fsdp_symm_mem": "symmetric memory for FSDP",
}
"""Switches that change memory and have no field."""


def _drop_budget(settings: Settings, reading: Reading) -> None:
    mode = settings("activation_checkpoint.mode")
    if mode is not None and mode.text.replace("-", "_") != "memory_budget":
        del reading.fields["checkpointing.budget"]  # read by that mode alone


def _optimizer(settings: Settings, reading: Reading) -> None:
    name = settings("optimizer.name")
    if name is not None:
        word = OPTIMIZERS.get(name.text.strip().lower())
        if word is None:
            reading.cannot_say(f"the optimizer {name.text[:40]}", name.place)
        else:
            reading.state("optimizer.name", word, name.place)
    fused = settings("optimizer.fused")
    if fused is not None and settings("optimizer.implementation") is None:
        reading.state("optimizer.implementation", "fused" if switched(settings, "optimizer.fused") else "foreach", fused.place)


def _compile(settings: Settings, reading: Reading) -> None:
    """compile.components names what is compiled: the layers, the loss, or both."""
    enable = settings("compile.enable")
    if enable is None:
        return
    on = switched(settings, "compile.enable") is not None
    listed = settings("compile.components")
    parts = convert.words(listed) if listed is not None else ["model", "loss"]
    reading.state("framework.compile", on and "model" in parts, enable.place)
    if on and listed is not None and ("model" in parts) != ("loss" in parts):
        what = "the loss is compiled and the layers are not" if "loss" in parts else "the layers are compiled and the loss is not"
        reading.cannot_say(what, listed.place)


def _eight_bits(settings: Settings, reading: Reading) -> None:
    """Converters decide; the sections say how. Before converters a switch of its own did."""
    listed = settings("model.converters")
    names = convert.words(listed)
    older = switched(settings, "quantize.linear.float8.enable_float8_linear") or switched(settings, "training.enable_fp8_linear")
    place = listed or older
    if place is None:
        return
    if older is not None or any(name in ("float8", "quantize.linear.float8") for name in names):
        _float8(settings, place, reading)
    if any(name in ("mx", "quantize.linear.mx") for name in names):
        reading.state("precision.compute", "float8", place.place)
        reading.state("precision.fp8.recipe", "mxfp8", place.place)
    for name in names:
        if "grouped_mm" in name:
            reading.cannot_say("experts in 8 bits", place.place)
        elif name.rsplit(".", 1)[-1] not in ("float8", "mx"):
            reading.cannot_say(f"the converter {name[:40]}", place.place)


def _float8(settings: Settings, place: Stated, reading: Reading) -> None:
    reading.state("precision.compute", "float8", place.place)
    recipe = settings("quantize.linear.float8.recipe_name")
    if recipe is not None and recipe.text.strip().lower().startswith("rowwise"):
        reading.cannot_say("8-bit products with a scale for each row", recipe.place)
    else:
        reading.state("precision.fp8.recipe", "current", (recipe or place).place)
    gather = settings("quantize.linear.float8.enable_fsdp_float8_all_gather")
    if gather is None:
        reading.default("precision.fp8.param_gather", False, "torchtitan")
    else:
        on = switched(settings, "quantize.linear.float8.enable_fsdp_float8_all_gather") is not None
        reading.state("precision.fp8.param_gather", on, gather.place)


def _evaluation(settings: Settings, reading: Reading) -> None:
    on = switched(settings, "validation.enable")
    if on is None:
        return
    size = settings("validation.local_batch_size")
    try:
        stated = replace(on, value=8) if size is None else size  # job_config.py: Validation.local_batch_size = 8
        reading.state("evaluate.micro_batch_size", convert.whole(stated), stated.place)
    except ValueError as error:
        reading.warnings.append(f"evaluate.micro_batch_size: {stated.text[:40]!r} cannot be read ({stated.place}): {error}")
