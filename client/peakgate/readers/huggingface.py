"""Hugging Face Trainer scripts: TrainingArguments as flags, YAML or JSON, under torchrun, accelerate or DeepSpeed.

Sources: transformers 5.24 training_args.py (_process_fsdp_args: `--fsdp` and `--fsdp_config`) and integrations/deepspeed.py; accelerate's
as in `accelerate.py`.
"""

from __future__ import annotations

from peakgate.readers import accelerate, deepspeed_config
from peakgate.readers.finetuners.values import count
from peakgate.readers.launch import Launch
from peakgate.readers.mixed_precision import Mixed, loaded_without_a_word, mixed_of, of_checkpoint, state_precision
from peakgate.readers.named_model import name_model
from peakgate.readers.not_training import state_other_method, trains
from peakgate.readers.own_defaults import state_own
from peakgate.readers.peft import read_adapters
from peakgate.readers.place import Place, Stated
from peakgate.readers.plain_flags import BATCHES, MICRO_BATCHES
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth
from peakgate.readers.trainer import read_arguments
from peakgate.readers.trainer_lengths import script_of, state_lengths
from peakgate.readers.trainer_settings import file_of, settings_of

SURE = ("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_checkpointing_kwargs")
LIKELY = (
    "output_dir",
    "num_train_epochs",
    "save_strategy",
    "eval_strategy",
    "lr_scheduler_type",
    "logging_steps",
    "save_steps",
    "save_total_limit",
    "fsdp",
    "deepspeed",
    "optim",
    "report_to",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "do_train",
    "overwrite_output_dir",
    "warmup_ratio",
)
VERSION = "framework.version"
ENOUGH = 4
"""Of the arguments that others have as well."""

NOT_TRAINER = ("zero_stage", "stage", "num_layers", "train_batch_size", "train_micro_batch_size")
"""Flags that make a script one of another kind, which reuses the Trainer's names (DeepSpeed-Chat has --zero_stage)."""


OTHERS = ("deepspeed_config", *(name for name in (*MICRO_BATCHES, *BATCHES) if name not in SURE))
"""What a script has in place of the Trainer's own arguments."""

OF_TOKENS = ("run_clm", "run_fim", "run_mlm", "run_plm", "run_summarization", "run_translation")
"""Example scripts whose loss is over the vocabulary."""


class HuggingFace:
    """Trainer scripts."""

    name = "huggingface"

    def recognises(self, launch: Launch) -> bool:
        """By the names of the example scripts, or of arguments."""
        settings = settings_of(launch, Reading())
        if not trains(launch.program) or only_judges(launch, settings):
            return False
        if script_of(launch.program)[1] is not None:
            return True
        if any(settings(name) is not None for name in NOT_TRAINER):
            return False
        if any(settings(name) is not None for name in SURE):
            return True
        others = any(settings(name) is not None for name in OTHERS)
        return not others and sum(settings(name) is not None for name in LIKELY) >= ENOUGH

    def read(self, launch: Launch) -> Reading:
        """What its arguments say."""
        reading = Reading()
        settings = settings_of(launch, reading)
        own_loop = launch.program.endswith("_no_trainer.py")
        reading.default("framework.name", "huggingface", "scripts of accelerate" if own_loop else "scripts of transformers' Trainer")
        name_model(settings, launch.files, reading)
        read_arguments(settings, reading)
        state_lengths(settings, reading, launch.program)
        state_other_method(launch, settings, reading)
        state_context(settings, reading)
        outside = accelerate.accelerate_settings(launch, reading)
        version = launch.own.fields.get(VERSION) or launch.around.fields.get(VERSION)
        mixed = read_placement(settings, outside, launch, reading, loaded=loaded_without_a_word(version))
        _say_format(version, mixed, reading)
        if read_adapters(settings, reading, dtype=half(mixed)) is not None:
            state_cast_adapters(reading)
        if own_loop:
            reading.default("optimizer.implementation", "foreach", "torch.optim.AdamW: foreach when none is named")
        name, example = script_of(launch.program)
        if example is not None:
            state_own(self.name, settings, launch, reading)
            if "accelerate" not in launch.launchers:  # which may have a config in the submitter's home
                state_own(f"{self.name} alone", settings, launch, reading)
            if name in OF_TOKENS:
                state_own(f"{self.name} tokens", settings, launch, reading)
        return reading


def only_judges(launch: Launch, settings: Settings) -> bool:
    """Whether it evaluates and trains nothing: an example script trains where it is told to, another one unless it is told not to."""
    trained = settings("do_train")
    tells = trained is None and script_of(launch.program)[1] is not None
    judged = switched_on(settings, "do_eval", "do_predict", "predict_with_generate") is not None
    return judged and (tells or truth(trained) is False)


def _say_format(version: Stated | None, mixed: Mixed, reading: Reading) -> None:
    """Which version was assumed, where it decides how a model is loaded: autocast over 16-bit weights is another recipe."""
    autocast = str(reading.get("precision.recipe")).startswith("amp-")
    if version is None and autocast and not mixed.dtype and of_checkpoint(reading) != "float32":
        whose = "transformers before 5 (later the checkpoint's format): state framework.version"
        reading.default("precision.parameters", "float32", whose)


def state_cast_adapters(reading: Reading) -> None:
    """DeepSpeed casts the whole module, adapters as well (runtime/engine.py: _configure_distributed_model)."""
    recipe = str(reading.get("precision.recipe"))
    if recipe.startswith("deepspeed-"):
        reading.default(
            "lora.adapter_dtype", "bfloat16" if recipe.endswith("bf16") else "float16", "deepspeed engine.py: the module is cast"
        )


def state_context(settings: Settings, reading: Reading) -> None:
    """Sequences that a group of ranks shares, as DeepSpeed's Ulysses does it (transformers integrations/deepspeed.py; accelerate)."""
    stated = settings("sequence_parallel_size")
    if stated is not None and count(stated) > 1:
        reading.state("parallelism.context", count(stated), stated.place)
        reading.state("parallelism.context_type", "ulysses", stated.place)


def half(mixed: Mixed) -> str:
    """The 16-bit format that the model is loaded in, where it is one."""
    return mixed.dtype if mixed.dtype in ("bfloat16", "float16") else ""


def read_placement(
    settings: Settings, outside: Settings, launch: Launch, reading: Reading, *, bf16_by_default: bool = False, loaded: Stated | None = None
) -> Mixed:
    """Sharding and precision, which decide each other; `outside` is what accelerate was told, `loaded` the format of a model for which the
    script names none."""
    named = outside("mixed_precision") or launch.environment("ACCELERATE_MIXED_PRECISION")
    mixed = mixed_of(settings, reading, named, on_by_default=bf16_by_default, loaded=loaded)
    accelerate.state_compile(outside, reading)
    kind, place = accelerate.kind_of(outside)
    config = deepspeed_of(settings, launch, reading)
    if config is None and kind == accelerate.DEEPSPEED:
        config = accelerate.deepspeed_settings(outside, launch, reading)
    if config is not None:
        deepspeed_config.read_config(config, reading)
        deepspeed_config.state_optimizer(config, reading)
        dtype = deepspeed_config.state_precision(config, reading, autocast=mixed.autocast, place=mixed.place)
        return Mixed(mixed.autocast, dtype or mixed.dtype, mixed.place)
    sharding = _sharding(settings, outside, kind, place, launch, reading)
    state_precision(mixed, reading, sharding=sharding, whose="TRL trainer/base_config.py: bf16 unless fp16")
    return mixed


def _sharding(settings: Settings, outside: Settings, kind: str, place: Place | None, launch: Launch, reading: Reading) -> str:
    """FSDP of the Trainer's own or accelerate's, or plain data parallelism."""
    fsdp = settings("fsdp")
    if fsdp is not None and truth(fsdp) is not False and fsdp.text.strip("[]'\" "):
        return accelerate.state_fsdp(_of_trainer(fsdp, settings, launch, reading), reading, fsdp.place)
    if kind == accelerate.FSDP and place is not None:
        sharding = accelerate.state_fsdp(outside, reading, place)
        accelerate.state_parallelism(outside, reading)
        return sharding
    if kind == accelerate.MEGATRON and place is not None:
        reading.cannot_say("Megatron-LM's plugin of accelerate", place)
    elif kind == accelerate.DDP and place is not None:
        reading.state("parallelism.sharding", "ddp", place)
    elif outside("config_file") is not None and outside("distributed_type") is None:
        return "ddp"  # a file that could not be read may say otherwise
    elif isinstance(world := launch.around.get("parallelism.world_size"), int) and world > 1:
        reading.default("parallelism.sharding", "ddp", "torch: DistributedDataParallel")
    return "ddp"


STRATEGIES = {
    "full_shard": "FULL_SHARD",
    "shard_grad_op": "SHARD_GRAD_OP",
    "no_shard": "NO_SHARD",
    "hybrid_shard": "HYBRID_SHARD",
    "hybrid_shard_zero2": "HYBRID_SHARD_ZERO2",
}


def _of_trainer(fsdp: Stated, settings: Settings, launch: Launch, reading: Reading) -> Settings:
    """`--fsdp "full_shard auto_wrap offload"` and --fsdp_config by the names of accelerate's flags."""
    words = " ".join(map(str, fsdp.value)).split() if isinstance(fsdp.value, list) else fsdp.text.replace(",", " ").split()
    config = settings.under("fsdp_config")
    file = settings("fsdp_config")
    if file is not None and isinstance(file.value, str):
        config = file_of(launch, file, reading)
    out = Settings()
    for key, stated in config.leaves.items():
        out.leaves[f"fsdp_{key.removeprefix('fsdp_')}"] = stated
    for word in words[:20]:
        if strategy := STRATEGIES.get(word.lower()):
            out.leaves["fsdp_sharding_strategy"] = Stated(strategy, fsdp.place)
        if word.lower() == "offload":
            out.leaves["fsdp_offload_params"] = Stated(value=True, place=fsdp.place)
    if truth(fsdp) and "fsdp_version" not in out.leaves:
        out.leaves["fsdp_version"] = Stated(2, fsdp.place)  # training_args.py: a bare switch is as new as FSDP2, its default
    return out


def deepspeed_of(settings: Settings, launch: Launch, reading: Reading) -> Settings | None:
    """The DeepSpeed configuration that the script is given: a path, a mapping, or text; None without one."""
    inner = settings.under("deepspeed")
    if inner.leaves:
        return inner
    for name in ("deepspeed", "deepspeed_config", "ds_config", "ds_config_path", "deepspeed_config_path", "deepspeed_config_file"):
        stated = settings(name)
        if stated is not None and isinstance(stated.value, str) and truth(stated) is None:
            return file_of(launch, stated, reading)
    return None
