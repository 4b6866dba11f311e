"""LLM Foundry on Composer: `composer train.py run.yaml key=value …`, `llmfoundry train run.yaml`, and the YAML files.

Sources: llm-foundry command_utils/train.py (keys; fsdp_config is dropped on one GPU), llmfoundry/utils/builders.py; composer
distributed/mosaic_parallelism.py (sharding_strategy, mixed_precision), trainer/trainer.py (microbatching, `auto`), utils/parallelism.py
(FSDPConfig: activation_checkpointing_reentrant = True, limit_all_gathers = True).
"""

from __future__ import annotations

from peakgate.readers import convert
from peakgate.readers.arguments import overrides_of
from peakgate.readers.composer_compute import state_compute
from peakgate.readers.composer_models import model_of
from peakgate.readers.launch import Launch
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.references import resolved
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth

NAME = "composer"
MODELS = ("mpt_causal_lm", "hf_causal_lm", "hf_prefix_lm", "hf_t5")
FSDP = "fsdp_config"
FOUNDRY = "llm-foundry"
INJECTED = "parameters"
"""The section of a run of MosaicML's platform that becomes the file (llm-foundry mcli/*.yaml)."""

OPTIMIZERS = {
    "decoupled_adamw": "adamw",
    "adamw": "adamw",
    "adam": "adam",
    "decoupled_lionw": "lion",
    "adalr_lion": "lion",
    "clip_lion": "lion",
    "decoupled_sgdw": "sgd-momentum",
}

ROWS = (
    Row("max_seq_len", "batch.sequence_length", convert.positive),
    Row(
        "device_train_microbatch_size", "batch.micro_batch_size", lambda stated: None if stated.text == "auto" else convert.positive(stated)
    ),
    Row(f"{FSDP}.activation_checkpointing_reentrant", "checkpointing.reentrant", convert.flag),
    Row(f"{FSDP}.activation_cpu_offload", "offload.activations", convert.always("cpu")),
    Row(f"{FSDP}.limit_all_gathers", "framework.fsdp.limit_all_gathers", convert.flag),
    Row("tp_config.tensor_parallel_degree", "parallelism.tensor", convert.positive),
)

SHARDING = {
    "FULL_SHARD": ("fsdp", None),
    "SHARD_GRAD_OP": ("fsdp", False),
    "NO_SHARD": ("ddp", None),
    "HYBRID_SHARD": ("hsdp", None),
    "_HYBRID_SHARD_ZERO2": ("hsdp", False),
}
"""sharding_strategy -> parallelism.sharding, framework.fsdp.reshard_after_forward."""

AUTOCAST = {"amp_bf16": "amp-bf16", "amp_fp16": "amp-fp16", "fp32": "fp32", "amp_fp8": "amp-bf16"}


SCRIPTS = ("train.py", "main.py")
"""The second is its name before release 0.1, and that of mosaicml/examples."""


class Composer:
    """The reader."""

    name = NAME

    def recognises(self, launch: Launch) -> bool:
        """A YAML file with LLM Foundry's models, by itself or behind its script or command."""
        if _is_foundry(launch.config) or _is_foundry(launch.config.under(INJECTED)):
            return True
        if launch.program == "llmfoundry":
            return len(launch.words) > 1 and launch.words[1].text == "train"
        named = _file(launch)
        if launch.program not in SCRIPTS or named is None:
            return False
        return (launch.program == "train.py" and FOUNDRY in launch.path) or _is_foundry(launch.settings_of(named.text, Reading()))

    def read(self, launch: Launch) -> Reading:
        """What the launch says."""
        reading = Reading()
        settings = _settings(launch, reading)
        reading.default("framework.name", NAME, "this reader")
        model_of(settings, reading)
        apply(ROWS, settings, reading)
        state_compute(launch.config.under("compute"), reading)
        world = launch.around.get("parallelism.world_size") or reading.get("gpu.count")
        world = world if isinstance(world, int) and world > 0 else 0
        _data(settings, reading)
        _batch(settings, world, reading)
        _fsdp(settings, world, reading)
        _precision(settings, world, reading)
        _optimizer(settings, reading)
        _runtime(settings, reading)
        state_own(NAME, settings, launch, reading)
        return reading


def _is_foundry(config: Settings) -> bool:
    name = config("model.name")
    generates = config.has("input_lengths") or config.has("output_lengths")  # scripts/inference/benchmarking/yamls
    return not generates and name is not None and name.text in MODELS and config("max_seq_len") is not None


def _file(launch: Launch) -> Stated | None:
    return next((word for word in launch.words[1:20] if word.text.endswith((".yaml", ".yml")) and "=" not in word.text), None)


def _settings(launch: Launch, reading: Reading) -> Settings:
    """The file, with its variables, and overrides."""
    named = _file(launch)
    settings = launch.config if named is None else launch.settings_of(named.text, reading)
    if named is not None and not settings.leaves:
        reading.cannot_say(f"what {named.text[:80]} says", named.place)
    settings = settings.under(INJECTED) if settings.has(INJECTED) and not _is_foundry(settings) else settings
    settings = settings.merged(overrides_of(launch.words[1:]))
    found = resolved(settings)
    length = found("variables.max_seq_len")
    if found("max_seq_len") is None and length is not None:
        found.override("max_seq_len", length)
    return found


def _data(settings: Settings, reading: Reading) -> None:
    """Text is joined to full sequences; examples are padded unless a packing ratio is given."""
    kind = settings("train_loader.name")
    ratio = settings("train_loader.dataset.packing_ratio")
    if kind is not None and kind.text == "finetuning":
        reading.state("method.name", "sft", kind.place)
        packed = ratio is not None and ratio.text not in ("1", "1.0")
        reading.state("batch.packed", packed, (ratio or kind).place)
        reading.state("batch.sequence_length_is", "exact" if packed else "cap", (ratio or kind).place)
    elif kind is not None:
        reading.state("method.name", "pretrain", kind.place)
    size = settings("device_eval_batch_size")
    if size is not None and settings.has("eval_loader"):
        apply((Row("device_eval_batch_size", "evaluate.micro_batch_size", convert.positive),), settings, reading)


def _batch(settings: Settings, world: int, reading: Reading) -> None:
    """global_train_batch_size over the GPUs is split into micro-batches; `auto` finds the largest that fits."""
    micro, total = settings("device_train_microbatch_size"), settings("global_train_batch_size")
    if micro is not None and micro.text == "auto":
        reading.warnings.append(f"batch.micro_batch_size: auto is found while the job runs ({micro.place}): state one to have it judged")
    size = reading.get("batch.micro_batch_size")
    try:
        whole = convert.whole(total) if total is not None else 0
    except ValueError as error:
        reading.warnings.append(f"global_train_batch_size: {error}")
        return
    tensor = reading.get("parallelism.tensor")
    ranks = world // tensor if isinstance(tensor, int) and tensor > 1 else world
    if total is not None and isinstance(size, int) and ranks > 0 and whole > 0:
        reading.state("batch.gradient_accumulation_steps", max(-(-whole // ranks // size), 1), total.place)


def _fsdp(settings: Settings, world: int, reading: Reading) -> None:
    """Without a config, or on one GPU, nothing is sharded and nothing is rebuilt."""
    if not settings.under(FSDP).leaves or world == 1:
        reading.default("parallelism.sharding", "none" if world == 1 else "ddp", "llm-foundry without fsdp_config")
        reading.default("checkpointing.mode", "none", "llm-foundry without fsdp_config")
        for path in ("checkpointing.reentrant", "framework.fsdp.limit_all_gathers", "offload.activations"):
            reading.fields.pop(path, None)
        return
    _strategy(settings, reading)
    _checkpoints(settings, reading)
    if place := switched_on(settings, f"{FSDP}.cpu_offload"):
        for path in ("offload.parameters", "offload.optimizer"):
            reading.state(path, "cpu", place)
    kind = settings(f"{FSDP}.state_dict_type")
    if kind is not None and kind.text == "full":
        reading.state("save.full_state_dict", True, kind.place)


def _strategy(settings: Settings, reading: Reading) -> None:
    strategy = settings(f"{FSDP}.sharding_strategy")
    if strategy is not None:
        word, reshards = SHARDING.get(strategy.text.strip(), ("", None))
        if not word:
            reading.warnings.append(f"parallelism.sharding: {strategy.text[:40]!r} is no strategy of FSDP ({strategy.place})")
        else:
            reading.state("parallelism.sharding", word, strategy.place)
        if reshards is not None:
            reading.state("framework.fsdp.reshard_after_forward", reshards, strategy.place)


def _checkpoints(settings: Settings, reading: Reading) -> None:
    checkpoint = settings(f"{FSDP}.activation_checkpointing")
    if checkpoint is not None:
        on = truth(checkpoint) is True
        reading.state("checkpointing.mode", "full" if on else "none", checkpoint.place)
        if on:
            reading.default("checkpointing.reentrant", True, "composer: activation_checkpointing_reentrant")
        else:
            reading.fields.pop("checkpointing.reentrant", None)


def _precision(settings: Settings, world: int, reading: Reading) -> None:
    """FSDP gathers in 16 bits under mixed_precision PURE or DEFAULT; under FULL, and without it, autocast casts alone."""
    stated = settings("precision")
    if stated is None:
        return
    recipe = AUTOCAST.get(stated.text.strip().lower())
    if recipe is None:
        reading.cannot_say(f"the precision {stated.text[:20]}", stated.place)
        return
    mixed = settings(f"{FSDP}.mixed_precision")
    sharded = bool(settings.under(FSDP).leaves) and world != 1 and (mixed is None or mixed.text.strip().upper() != "FULL")
    if recipe == "amp-fp16" and sharded:
        reading.cannot_say("FSDP that gathers in float16", stated.place)
    reading.state("precision.recipe", "fsdp-bf16" if recipe == "amp-bf16" and sharded else recipe, stated.place)
    if stated.text.strip().lower() == "amp_fp8":
        reading.state("precision.compute", "float8", stated.place)


def _optimizer(settings: Settings, reading: Reading) -> None:
    stated = settings("optimizer.name")
    if stated is None:
        return
    name = OPTIMIZERS.get(stated.text.strip().lower())
    if name is None:
        reading.cannot_say(f"the optimizer {stated.text[:40]}", stated.place)
    else:
        reading.state("optimizer.name", name, stated.place)


def _runtime(settings: Settings, reading: Reading) -> None:
    segments = settings("expandable_segments")  # utils/config_utils.py TrainConfig: on unless it is switched off
    apply((Row("expandable_segments", "framework.expandable_segments", convert.flag),), settings, reading)
    if segments is None:
        reading.default("framework.expandable_segments", True, "llm-foundry's TrainConfig")
    if settings.has("compile_config"):
        first = next(stated for path, stated in settings.leaves.items() if path.startswith("compile_config"))
        if first.value is not None:
            reading.state("framework.compile", True, first.place)
    target = settings.first("model.activation_checkpointing_target", "activation_checkpointing_target")
    if target is not None and reading.get("checkpointing.mode") == "full":
        reading.cannot_say("checkpoints of named parts", target.place)
