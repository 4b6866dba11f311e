"""What accelerate was told: flags of `accelerate launch` over its config file.

Sources: accelerate 1.15 commands/launch.py (_validate_launch_command: a file's nested blocks become flags, flags win; defaults of flags),
utils/dataclasses.py (FullyShardedDataParallelPlugin, DeepSpeedPlugin: zero_stage 2), utils/constants.py (FSDP_SHARDING_STRATEGY),
utils/fsdp_utils.py (checkpoints are not reentrant), parallelism_config.py; TRL 1.10 trl/accelerate_configs (names of ready files).
"""

from __future__ import annotations

from peakgate.readers.arguments import Arguments
from peakgate.readers.convert import flag, one_of, positive
from peakgate.readers.finetuners.values import count
from peakgate.readers.launch import Launch
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth
from peakgate.readers.trainer_settings import file_of

BLOCKS = ("fsdp_config", "deepspeed_config", "megatron_lm_config", "parallelism_config", "dynamo_config", "fp8_config")
FSDP, DEEPSPEED, MEGATRON, DDP = "fsdp", "deepspeed", "megatron", "ddp"

TYPES = {"fsdp": FSDP, "deepspeed": DEEPSPEED, "megatron_lm": MEGATRON, "multi_gpu": DDP}
SWITCHES = {"use_fsdp": FSDP, "use_deepspeed": DEEPSPEED, "use_megatron_lm": MEGATRON, "multi_gpu": DDP}

READY: dict[str, dict[str, object]] = {
    "fsdp1": {"distributed_type": "FSDP", "fsdp_version": 1, "fsdp_sharding_strategy": "FULL_SHARD"},
    "fsdp2": {"distributed_type": "FSDP", "fsdp_version": 2, "fsdp_reshard_after_forward": True},
    "zero1": {"distributed_type": "DEEPSPEED", "zero_stage": 1},
    "zero2": {"distributed_type": "DEEPSPEED", "zero_stage": 2},
    "zero3": {"distributed_type": "DEEPSPEED", "zero_stage": 3, "zero3_save_16bit_model": True},
    "multi_gpu": {"distributed_type": "MULTI_GPU"},
    "single_gpu": {"num_processes": 1},
}
"""TRL's ready files; all but the last have 8 processes and bf16."""

READY_FOR_ALL: dict[str, object] = {"mixed_precision": "bf16", "num_processes": 8}


def accelerate_settings(launch: Launch, reading: Reading, own: Settings | None = None) -> Settings:
    """Settings by the names of accelerate's flags; `own`: those that a program takes for it among its own (TRL's command)."""
    flags = launch.launcher_flags.get("accelerate", Arguments()).flags.merged(own or Settings())
    named = flags.first("accelerate_config", "config_file")
    if named is None:
        return flags
    ready = READY.get(named.text)
    if ready is not None:
        place = named.place
        return Settings({key: Stated(value, place) for key, value in {**READY_FOR_ALL, **ready}.items()}).merged(flags)
    return _unfolded(file_of(launch, named, reading)).merged(flags)


def _unfolded(file: Settings) -> Settings:
    """A file's nested blocks as flags; keys of the FSDP block have their prefix or not."""
    out = Settings()
    for path, stated in file.leaves.items():
        block, _, key = path.partition(".")
        if block not in BLOCKS or not key:
            out.leaves[path] = stated
        elif block == "fsdp_config":
            out.leaves[key if key.startswith("fsdp_") else f"fsdp_{key}"] = stated
        elif block == "parallelism_config":
            out.leaves[key if key.startswith("parallelism_config_") else f"parallelism_config_{key}"] = stated
        else:
            out.leaves[key] = stated
    return out


def kind_of(settings: Settings) -> tuple[str, Place | None]:
    """How accelerate distributes, and where that stands; empty when it is not said."""
    for key, kind in SWITCHES.items():
        if place := switched_on(settings, key):
            return kind, place
    stated = settings("distributed_type")
    return (TYPES.get(stated.text.strip().lower(), ""), stated.place) if stated is not None else ("", None)


def _sharding(number_or_name: Stated) -> str | None:
    """FSDP1's strategy as a number from 1 or a name."""
    word = number_or_name.text.strip().upper().removeprefix("SHARDINGSTRATEGY.")
    return {
        "1": "fsdp",
        "FULL_SHARD": "fsdp",
        "2": "fsdp",
        "SHARD_GRAD_OP": "fsdp",
        "3": "ddp",
        "NO_SHARD": "ddp",
        "4": "hsdp",
        "HYBRID_SHARD": "hsdp",
        "5": "hsdp",
        "HYBRID_SHARD_ZERO2": "hsdp",
        "_HYBRID_SHARD_ZERO2": "hsdp",
    }.get(word)


KEEPS_WEIGHTS = ("2", "5", "SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2", "_HYBRID_SHARD_ZERO2")
"""Strategies whose weights stay gathered between the forward and the backward pass."""

FSDP_ROWS = (
    Row("fsdp_version", "framework.fsdp.version", positive),
    Row("fsdp_limit_all_gathers", "framework.fsdp.limit_all_gathers", flag),
    Row(
        "fsdp_state_dict_type",
        "save.full_state_dict",
        one_of({"full_state_dict": True, "sharded_state_dict": False, "local_state_dict": False}),
    ),
)


def state_fsdp(settings: Settings, reading: Reading, place: Place) -> str:
    """FSDP by the names of accelerate's flags; returns the sharding."""
    strategy = settings("fsdp_sharding_strategy")
    reshard = settings("fsdp_reshard_after_forward")
    if strategy is None and reshard is not None and truth(reshard) is None:
        strategy = reshard  # FSDP1's name may stand there as well (FullyShardedDataParallelPlugin: reshard_after_forward)
    found = _sharding(strategy) if strategy is not None else None
    version_2 = (stated := settings("fsdp_version")) is not None and stated.text == "2"
    sharding = "fsdp" if found is None or (version_2 and truth(reshard) is not None) else found
    reading.state("parallelism.sharding", sharding, strategy.place if strategy is not None and found is not None else place)
    if reshard is not None and (value := truth(reshard)) is not None:
        reading.state("framework.fsdp.reshard_after_forward", value, reshard.place)
    elif strategy is not None and strategy.text.strip().upper() in KEEPS_WEIGHTS:
        reading.state("framework.fsdp.reshard_after_forward", value=False, place=strategy.place)
    apply(FSDP_ROWS, settings, reading)
    if offloaded := switched_on(settings, "fsdp_offload_params", "fsdp_cpu_offload"):
        reading.state("offload.parameters", "cpu", offloaded)
        reading.state("offload.optimizer", "cpu", offloaded)
    if again := switched_on(settings, "fsdp_activation_checkpointing"):
        _in_the_trainers_place(again, reading)
        reading.state("checkpointing.mode", "full", again)
        reading.state("checkpointing.reentrant", value=False, place=again)
        if host := switched_on(settings, "fsdp_activation_checkpointing_offload"):
            reading.state("offload.activations", "cpu", host)
    return sharding


def _in_the_trainers_place(place: Place, reading: Reading) -> None:
    """The Trainer's own checkpoints must be off beside those of FSDP (transformers trainer.py: both True is a ValueError)."""
    own = reading.fields.get("checkpointing.mode")
    if own is None or own.place.kind == DEFAULT:
        return
    if own.value != "none":
        reading.warnings.append(f"checkpointing.mode: {own.place} and {place} are both on, which transformers refuses")
    del reading.fields["checkpointing.mode"]


DEEPSPEED_NAMES = {
    "zero_stage": "zero_optimization.stage",
    "offload_optimizer_device": "zero_optimization.offload_optimizer.device",
    "offload_param_device": "zero_optimization.offload_param.device",
    "zero3_save_16bit_model": "zero_optimization.stage3_gather_16bit_weights_on_model_save",
}


def deepspeed_settings(settings: Settings, launch: Launch, reading: Reading) -> Settings:
    """DeepSpeed's own settings: those of its file, or what accelerate makes of its flags."""
    file = settings("deepspeed_config_file")
    if file is not None:
        return file_of(launch, file, reading)
    out = Settings({name: stated for key, name in DEEPSPEED_NAMES.items() if (stated := settings(key)) is not None})
    if out("zero_optimization.stage") is None:
        out.override("zero_optimization.stage", Stated(2, Place(kind=DEFAULT, key="accelerate DeepSpeedPlugin: zero_stage=2")))
    return out


PARALLEL_ROWS = (
    Row("parallelism_config_tp_size", "parallelism.tensor", positive),
    Row("parallelism_config_cp_size", "parallelism.context", positive),
    Row("parallelism_config_cp_comm_strategy", "parallelism.context_type", one_of({"allgather": "all-gather", "alltoall": "ring"})),
)


def state_parallelism(settings: Settings, reading: Reading) -> None:
    """accelerate's ParallelismConfig: more than one replica of the shards is hybrid sharding."""
    apply(PARALLEL_ROWS, settings, reading)
    sequence = settings("parallelism_config_sp_size")
    if sequence is not None and count(sequence) > 1:
        reading.state("parallelism.context", count(sequence), sequence.place)
        reading.state("parallelism.context_type", "ulysses", sequence.place)
    replicas, shards = settings("parallelism_config_dp_replicate_size"), settings("parallelism_config_dp_shard_size")
    if replicas is not None and shards is not None and count(replicas) > 1:
        if count(shards) > 1:
            reading.state("parallelism.sharding", "hsdp", replicas.place)
            reading.state("parallelism.shard_degree", count(shards), shards.place)
        else:
            reading.state("parallelism.sharding", "ddp", replicas.place)


def state_compile(settings: Settings, reading: Reading) -> None:
    """A compiler's backend other than none."""
    backend = settings.first("dynamo_backend")
    if backend is not None and backend.text.strip().lower() not in ("no", "false", "none", "eager"):
        reading.state("framework.compile", value=True, place=backend.place)


def state_world(settings: Settings, reading: Reading) -> None:
    """Processes, where the program takes accelerate's flags itself."""
    apply([Row("num_processes", "parallelism.world_size", positive)], settings, reading)
