"""A DeepSpeed config file as the trainers around Hugging Face's modules use it: `auto` follows the trainer.

Sources: deepspeed runtime/zero/config.py (names with and without `stage3_`), runtime/config.py; transformers integrations/deepspeed.py
(HfTrainerDeepSpeedConfig: what `auto` becomes); accelerate utils/dataclasses.py, DeepSpeedPlugin.set_mixed_precision: bf16 and fp16
follow the trainer where the file is silent; deepspeed runtime/engine.py: the module is cast whole, adapters with it.
"""

from __future__ import annotations

from peakgate.readers.convert import always, flag, one_of, whole
from peakgate.readers.files import FileError
from peakgate.readers.finetuners.values import count, not_counted, on, say
from peakgate.readers.launch import Launch
from peakgate.readers.place import JSON, Place, Stated
from peakgate.readers.reading import Convert, Reading, Row, Value, apply
from peakgate.readers.settings import Settings, read_settings

SHARDING = "parallelism.sharding"
STAGES = ("ddp", "zero1", "zero2", "zero3")
DEVICES = one_of({"none": None, "cpu": "cpu", "nvme": "nvme"})


def _unless_auto(convert: Convert) -> Convert:
    def converted(stated: Stated) -> Value | None:
        return None if stated.text.strip().lower() == "auto" else convert(stated)

    return converted


_SIZE, _FLAG, _Z = _unless_auto(whole), _unless_auto(flag), "framework.zero"

ROWS = (
    Row("offload_optimizer.device", "offload.optimizer", DEVICES),
    Row("offload_param.device", "offload.parameters", DEVICES),
    Row("cpu_offload", "offload.optimizer", always("cpu")),
    Row("reduce_bucket_size", f"{_Z}.reduce_bucket_size", _SIZE),
    Row("allgather_bucket_size", f"{_Z}.allgather_bucket_size", _SIZE),
    Row("overlap_comm", f"{_Z}.overlap_comm", _FLAG),
    Row("contiguous_gradients", f"{_Z}.contiguous_gradients", _FLAG),
)
STAGE_3 = (
    Row("max_live_parameters", f"{_Z}.max_live_parameters", _SIZE),
    Row("prefetch_bucket_size", f"{_Z}.prefetch_bucket_size", _SIZE),
    Row("param_persistence_threshold", f"{_Z}.param_persistence_threshold", _SIZE),
    Row("gather_16bit_weights_on_model_save", "save.full_state_dict", always(True)),
    Row("gather_fp16_weights_on_model_save", "save.full_state_dict", always(True)),
)
"""What stage 3 alone looks at."""

OPTIMIZERS = {"adam": "adamw", "adamw": "adamw", "lamb": "lamb", "lion": "lion", "muon": "muon"}
"""deepspeed runtime/engine.py: an Adam of the file is AdamW unless adam_w_mode is false."""

NOT_COUNTED = ("zero_quantized_weights", "zero_quantized_gradients", "mics_shard_size")


def state_zero(settings: Settings, reading: Reading, *, half: str) -> None:
    """States what a file says; `half`: bf16, fp16 or empty, the trainer's own."""
    zero = settings.under("zero_optimization")
    stage = zero("stage")
    level = min(count(stage), 3)
    if stage is not None:
        say(reading, SHARDING, STAGES[level], stage)
    settings_of_stage = Settings({key.removeprefix("stage3_"): stated for key, stated in zero.leaves.items()})
    apply((*ROWS, *(STAGE_3 if level == 3 else ())), settings_of_stage, reading)
    not_counted(NOT_COUNTED, zero, reading)
    if (pieces := zero("zero_hpz_partition_size")) and count(pieces) > 1:
        reading.cannot_say("zero_hpz_partition_size: a second copy of the weights in each node", pieces.place)
    if (tensor := settings("tensor_parallel.autotp_size")) and count(tensor) > 1:
        say(reading, "parallelism.tensor", count(tensor), tensor)
    if (dtype := settings("data_types.grad_accum_dtype")) and dtype.text.lower() in ("fp32", "float32"):
        say(reading, "precision.gradients", "float32", dtype)
    _optimizer(settings, reading)
    _precision(settings, reading, stage, half)
    if level and stage is not None:
        reading.fields.pop("framework.name", None)  # the same modules and trainer, with DeepSpeed's step
        say(reading, "framework.name", "deepspeed", stage)


def _optimizer(settings: Settings, reading: Reading) -> None:
    stated = settings("optimizer.type")
    if stated is None:
        return
    word = stated.text.strip().lower()
    if word not in OPTIMIZERS:
        reading.cannot_say(f"optimizer {stated.text[:60]}", stated.place)
        return
    reading.fields.pop("optimizer.implementation", None)
    reading.fields.pop("optimizer.name", None)  # the file's own wins over the trainer's
    say(reading, "optimizer.name", OPTIMIZERS[word], stated)
    say(reading, "optimizer.implementation", "fused", stated)


def _precision(settings: Settings, reading: Reading, stage: Stated | None, half: str) -> None:
    for kind in ("bf16", "fp16"):
        stated = settings(f"{kind}.enabled") or settings("bfloat16.enabled" if kind == "bf16" else "")
        if stated is not None and stated.text.lower() != "auto":
            if on(stated):
                say(reading, "precision.recipe", f"deepspeed-{kind}", stated)
                return
        elif half == kind:
            source = stated or stage
            place = source.place if source is not None else Place(kind=JSON, key="zero_optimization")
            reading.state("precision.recipe", f"deepspeed-{kind}", place)
            return
    if stage is not None:
        say(reading, "precision.recipe", "fp32", stage)


def zero_settings(stated: Stated, launch: Launch, reading: Reading, bundled: dict[str, Settings]) -> Settings | None:
    """The settings of a file that a trainer names, or of the one that it brings along; without either the answer is open."""
    path = stated.text.strip()
    try:
        if path.startswith("{"):
            return read_settings(path, stated.place.file or "deepspeed")
        return read_settings(launch.files.text(path), path)
    except FileError as error:
        known = bundled.get(path) or bundled.get(path.rsplit("/", 1)[-1])
        if known is None:
            reading.cannot_say(f"deepspeed config {path[:200]} {error}", stated.place)
            return None
        return Settings({key: Stated(each.value, Place(kind=JSON, key=key, file=path)) for key, each in known.leaves.items()})
