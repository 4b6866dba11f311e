"""FSDP as Hugging Face's trainer and accelerate have it: words of a strategy, and a config whose keys may begin with `fsdp_`.

Sources: transformers training_args.py (fsdp, fsdp_config); accelerate utils/dataclasses.py, FullyShardedDataParallelPlugin: strategies by
name or number, reshard_after_forward is a switch for version 2 and a strategy for version 1, cpu_offload takes the optimizer's states
along; accelerator.py, _prepare_fsdp: activation checkpointing is the non-reentrant one.
"""

from __future__ import annotations

from peakgate.readers.convert import always, flag, one_of
from peakgate.readers.finetuners.values import on, say
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

STRATEGIES = {
    "full_shard": ("fsdp", True),
    "1": ("fsdp", True),
    "shard_grad_op": ("fsdp", False),
    "2": ("fsdp", False),
    "no_shard": ("ddp", True),
    "3": ("ddp", True),
    "hybrid_shard": ("hsdp", True),
    "4": ("hsdp", True),
    "hybrid_shard_zero2": ("hsdp", False),
    "5": ("hsdp", False),
}
"""Strategy -> parallelism.sharding, and whether weights are freed between forward and backward."""

SHARDING, RESHARD = "parallelism.sharding", "framework.fsdp.reshard_after_forward"

ROWS = (
    Row("version", "framework.fsdp.version", one_of({"1": 1, "2": 2})),
    Row("limit_all_gathers", "framework.fsdp.limit_all_gathers", flag),
    Row("offload_params", "offload.parameters", always("cpu")),
    Row("offload_params", "offload.optimizer", always("cpu")),
    Row("cpu_offload", "offload.parameters", always("cpu")),
    Row("cpu_offload", "offload.optimizer", always("cpu")),
    Row("activation_checkpointing", "checkpointing.mode", always("full")),
    Row("activation_checkpointing", "checkpointing.reentrant", always(False)),
    Row("state_dict_type", "save.full_state_dict", one_of({"full_state_dict": True, "sharded_state_dict": None, "local_state_dict": None})),
)


def without_prefix(settings: Settings) -> Settings:
    """The keys without `fsdp_` in front."""
    return Settings({key.removeprefix("fsdp_"): stated for key, stated in settings.leaves.items()})


def state_fsdp(options: Stated | None, settings: Settings, reading: Reading) -> None:
    """States sharding, version and offload. `options`: the words of the trainer's `fsdp`; `settings`: its config, without prefixes."""
    source = options or next(iter(settings.leaves.values()), None)
    if source is None:
        return
    words = _words(options)
    strategy = settings("sharding_strategy") or settings("reshard_after_forward")
    named = next((word for word in words if word in STRATEGIES), "")
    if strategy is not None and strategy.text.strip().lower() in STRATEGIES:
        named, source = strategy.text.strip().lower(), strategy
    sharding, reshards = STRATEGIES.get(named, ("fsdp", True))
    say(reading, SHARDING, sharding, source)
    switch = settings("reshard_after_forward")
    if switch is not None and switch.text.strip().lower() in ("true", "false"):
        say(reading, RESHARD, on(switch), switch)
    elif not reshards:
        say(reading, RESHARD, False, source)
    if "offload" in words and options is not None:
        say(reading, "offload.parameters", "cpu", options)
        say(reading, "offload.optimizer", "cpu", options)
    apply(ROWS, settings, reading)


def _words(options: Stated | None) -> list[str]:
    if options is None:
        return []
    parts = options.value if isinstance(options.value, list) else options.text.replace(",", " ").split()
    return [str(part).strip().lower() for part in parts]
