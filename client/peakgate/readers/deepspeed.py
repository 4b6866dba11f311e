"""Plain DeepSpeed scripts: `deepspeed train.py --deepspeed_config ds.json`, and a DeepSpeed configuration that stands by itself.

Sources: DeepSpeed 0.19 runtime/config.py (_set_batch_related_parameters), __init__.py (add_config_arguments: --deepspeed,
--deepspeed_config), runtime/activation_checkpointing/config.py; DeepSpeedExamples applications/DeepSpeed-Chat (main.py and ds_utils.py:
--zero_stage, --offload and --dtype make the configuration).
"""

from __future__ import annotations

from peakgate.readers import accelerate, deepspeed_config
from peakgate.readers.convert import one_of, positive, whole
from peakgate.readers.huggingface import deepspeed_of, state_cast_adapters
from peakgate.readers.launch import Launch
from peakgate.readers.mixed_precision import dtype_of
from peakgate.readers.named_model import name_model
from peakgate.readers.not_training import state_other_method, trains
from peakgate.readers.peft import read_adapters
from peakgate.readers.place import LAUNCHER, Place, Stated
from peakgate.readers.plain_flags import state_checkpoints, state_micro_batch, state_sequence
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth
from peakgate.readers.trainer import state_attention
from peakgate.readers.trainer_settings import settings_of

OWN_KEYS = ("zero_optimization", "train_micro_batch_size_per_gpu")
FORMATS = ("fp16", "bf16", "bfloat16", "optimizer.type")

MICRO, STEPS, GLOBAL = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size"
MICRO_PATH, STEPS_PATH = "batch.micro_batch_size", "batch.gradient_accumulation_steps"


class DeepSpeed:
    """Scripts that call deepspeed.initialize themselves."""

    name = "deepspeed"

    def recognises(self, launch: Launch) -> bool:
        """By DeepSpeed's own flags, its launcher, or the keys of its configuration."""
        if not trains(launch.program):
            return False
        flags = launch.arguments.flags
        if any(flags(name) is not None for name in ("deepspeed", "deepspeed_config", "ds_config", "zero_stage")):
            return True
        return "deepspeed" in launch.launchers or is_config(launch.config)

    def read(self, launch: Launch) -> Reading:
        """What the script's common flags and the configuration say."""
        reading = Reading()
        settings = settings_of(launch, reading)
        config = settings if is_config(settings) else deepspeed_of(settings, launch, reading)
        settings = Settings({key: stated for key, stated in settings.leaves.items() if not deepspeed_config.is_auto(stated)})
        settings, config = _with_accelerate(settings, config, launch, reading)
        reading.default("framework.name", "deepspeed", "scripts that call deepspeed.initialize")
        name_model(settings, launch.files, reading)
        apply(DEGREES, settings, reading)
        state_other_method(launch, settings, reading)
        dtype = _configured(config, settings, launch, reading) if config is not None else _by_flags(settings, reading)
        state_micro_batch(settings, reading)
        apply([Row(STEPS, STEPS_PATH, positive)] if reading.get(STEPS_PATH) is None else [], settings, reading)
        state_sequence(settings, reading)
        state_attention(settings, reading)
        state_checkpoints(settings, reading)
        _activations(config, reading)
        if place := switched_on(settings, "deepspeed_transformer_kernel"):
            reading.cannot_say("DeepSpeed's own kernel of a layer", place)
        if read_adapters(settings, reading, dtype=dtype) is not None:
            state_cast_adapters(reading)
        return reading


def _with_accelerate(settings: Settings, config: Settings | None, launch: Launch, reading: Reading) -> tuple[Settings, Settings | None]:
    """The configuration and the number format of `accelerate launch --use_deepspeed`, where the script has none of its own."""
    if "accelerate" not in launch.launchers:
        return settings, config
    outside = accelerate.accelerate_settings(launch, reading)
    if config is None and accelerate.kind_of(outside)[0] == accelerate.DEEPSPEED:
        config = accelerate.deepspeed_settings(outside, launch, reading)
    mixed = outside("mixed_precision")
    if mixed is not None and settings("mixed_precision") is None:
        settings.override("mixed_precision", mixed)
    return settings, config


DEGREES = (
    Row("tensor_model_parallel_size", "parallelism.tensor", positive),
    Row("pipeline_model_parallel_size", "parallelism.pipeline", positive),
    Row("pipe_parallel_size", "parallelism.pipeline", positive),
    Row("model_parallel_size", "parallelism.tensor", positive),  # gpt-neox megatron/neox_arguments/neox_args.py
    Row("pipeline_parallel_size", "parallelism.pipeline", positive),
    Row("pp_size", "parallelism.pipeline", positive),
    Row("ds_sequence_parallel_size", "parallelism.context", positive),
    Row("sequence_parallel_size", "parallelism.context", positive),
)


def is_config(config: Settings) -> bool:
    """Whether a file is a DeepSpeed configuration."""
    if any(config.has(key) for key in OWN_KEYS):
        return True
    return config.has(GLOBAL) and any(config.has(key) for key in FORMATS)


def _configured(config: Settings, settings: Settings, launch: Launch, reading: Reading) -> str:
    """The configuration's fields; returns the 16-bit format."""
    deepspeed_config.read_config(config, reading)
    deepspeed_config.state_optimizer(config, reading)
    _batch(config, launch, reading)
    autocast, place = _switched(settings, reading)
    return deepspeed_config.state_precision(config, reading, autocast=autocast, place=place.place if place else None)


def _switched(settings: Settings, reading: Reading) -> tuple[str, Stated | None]:
    """bf16 or fp16 of the script's own flags."""
    for word in ("bf16", "fp16"):
        stated = settings(word)
        if stated is not None and truth(stated):
            return word, stated
    stated = settings.first("dtype", "precision", "mixed_precision")
    return {"bfloat16": "bf16", "float16": "fp16"}.get(dtype_of(stated, reading), ""), stated


def _by_flags(settings: Settings, reading: Reading) -> str:
    """Scripts that make the configuration of flags (DeepSpeed-Chat: stage 0 and fp16 unless told otherwise)."""
    apply([Row("zero_stage", "parallelism.sharding", one_of({"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"}))], settings, reading)
    if place := switched_on(settings, "offload"):
        reading.state("offload.optimizer", "cpu", place)
        if reading.get("parallelism.sharding") == "zero3":
            reading.state("offload.parameters", "cpu", place)
    if settings("zero_stage") is None:
        near = settings("deepspeed")
        reading.cannot_say(
            "a configuration of DeepSpeed that the script makes itself", near.place if near else Place(kind=LAUNCHER, key="deepspeed")
        )
    word, stated = _switched(settings, reading)
    if stated is not None and word:
        reading.state("precision.recipe", f"deepspeed-{word}", stated.place)
    elif settings("zero_stage") is not None:
        word = "fp16"
        reading.default("precision.recipe", "deepspeed-fp16", "DeepSpeed-Chat main.py: dtype=fp16")
    return {"bf16": "bfloat16", "fp16": "float16"}.get(word, "")


def _batch(config: Settings, launch: Launch, reading: Reading) -> None:
    """Two of micro-batch, accumulation and global batch give the third; the global batch is that of all data parallel ranks."""
    micro, steps, total = (_size(config(key), key, reading) for key in (MICRO, STEPS, GLOBAL))
    ranks = _ranks(launch, reading)
    if micro is not None:
        reading.take(MICRO_PATH, micro)
    if steps is not None:
        reading.take(STEPS_PATH, steps)
    if total is None:
        return
    if not ranks:
        if micro is None:
            reading.warnings.append(f"{MICRO_PATH}: {GLOBAL} ({total.place}) is for an unknown number of GPUs")
        return
    known = int(str(micro.value)) if micro else 0, int(str(steps.value)) if steps else 0
    whole_batch = int(str(total.value))
    if all(known) and known[0] * known[1] * ranks != whole_batch:
        reading.warnings.append(
            f"{GLOBAL} {whole_batch} ({total.place}) is not {MICRO} {known[0]} x {STEPS} {known[1]} x {ranks} data parallel ranks"
        )
    elif known[0] and not known[1]:
        _derived(reading, STEPS_PATH, whole_batch // ranks // known[0], total)
    elif not known[0]:
        _derived(reading, MICRO_PATH, whole_batch // ranks // (known[1] or 1), total)


def _derived(reading: Reading, path: str, value: int, total: Stated) -> None:
    if value > 0:
        reading.state(path, value, total.place)
    else:
        reading.warnings.append(f"{path}: {GLOBAL} {total.text[:20]} ({total.place}) is too small for the GPUs")


def _ranks(launch: Launch, reading: Reading) -> int:
    """Data parallel ranks; 0 when the GPUs are not known."""
    world = launch.around.get("parallelism.world_size")
    if not isinstance(world, int) or isinstance(world, bool) or world < 1:
        return 0
    shared = 1
    for path in ("parallelism.tensor", "parallelism.pipeline", "parallelism.context"):
        degree = reading.get(path)
        shared *= degree if isinstance(degree, int) and degree > 0 else 1
    return max(1, world // shared)


def _size(stated: Stated | None, key: str, reading: Reading) -> Stated | None:
    if stated is None or deepspeed_config.is_auto(stated):
        return None
    try:
        size = whole(stated)
    except ValueError as error:
        reading.warnings.append(f"{key}: {stated.text[:40]!r} cannot be read ({stated.place}): {error}")
        return None
    return Stated(size, stated.place) if size > 0 else None


def _activations(config: Settings | None, reading: Reading) -> None:
    """The block configures DeepSpeed's own checkpoints, which only a script switches on."""
    if config is None or reading.get("checkpointing.mode") != "full":
        return
    if place := switched_on(config, "activation_checkpointing.cpu_checkpointing"):
        reading.state("offload.activations", "cpu", place)
