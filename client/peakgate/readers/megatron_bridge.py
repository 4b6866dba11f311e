"""Megatron-Bridge and NeMo 2: a recipe by its name, a YAML file and `key=value` words over its ConfigContainer.

Sources: Megatron-Bridge at 067f987d, scripts/training/run_recipe.py (flags), src/megatron/bridge/training/config.py (ConfigContainer,
_validate_and_sync_distributed_optimizer_settings), recipes/common.py; NeMo 2 nemo/collections/llm/api.py (`nemo llm pretrain --factory`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.readers.arguments import overrides_of
from peakgate.readers.files import FileError
from peakgate.readers.finetuners.values import count
from peakgate.readers.launch import Launch
from peakgate.readers.megatron_bridge_lora import read_lora, state_formats
from peakgate.readers.megatron_bridge_nemo import adapts, factory_settings, tunes, warn_of_factory
from peakgate.readers.megatron_bridge_recipes import Recipe, recipe_of
from peakgate.readers.megatron_bridge_settings import canonical_of, recipe_settings
from peakgate.readers.megatron_core.model import GPT
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.placement import world_of
from peakgate.readers.megatron_core.read import read_core
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import DEFAULT, FLAG, YAML, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings, read_settings
from peakgate.readers.switches import truth

SECTIONS = (
    "model",
    "train",
    "dataset",
    "optimizer",
    "scheduler",
    "ddp",
    "checkpoint",
    "mixed_precision",
    "peft",
    "comm_overlap",
    "dist",
    "rng",
    "logger",
)
OWN = ("train.train_iters", "train.global_batch_size", "train.micro_batch_size")
"""Keys of ConfigContainer that no other format has together with its sections."""

FLAGS = {
    ("micro_batch_size", "mb"): "train.micro_batch_size",
    ("global_batch_size", "gb"): "train.global_batch_size",
    ("seq_length", "sl"): "dataset.seq_length",
    ("tensor_model_parallel_size", "tp"): "model.tensor_model_parallel_size",
    ("pipeline_model_parallel_size", "pp"): "model.pipeline_model_parallel_size",
    ("context_parallel_size", "cp"): "model.context_parallel_size",
    ("virtual_pipeline_model_parallel_size", "vp"): "model.virtual_pipeline_model_parallel_size",
    ("expert_model_parallel_size", "ep"): "model.expert_model_parallel_size",
    ("expert_tensor_parallel_size", "etp", "et"): "model.expert_tensor_parallel_size",
    ("pretrained_checkpoint",): "checkpoint.pretrained_checkpoint",
    ("pipeline_model_parallel_layout",): "model.pipeline_model_parallel_layout",
    ("use_megatron_fsdp",): "ddp.use_megatron_fsdp",
    ("cuda_graph_impl",): "model.cuda_graph_impl",
    ("cuda_graph_scope",): "model.cuda_graph_scope",
    ("recompute_modules",): "model.recompute_modules",
    ("recompute_num_layers",): "model.recompute_num_layers",
    ("num_layers",): "model.num_layers",
    ("hidden_size",): "model.hidden_size",
    ("num_moe_experts",): "model.num_moe_experts",
}
"""Flags of run_recipe.py and of scripts/performance -> field of ConfigContainer."""

COMPUTES = {
    "bf16": "bf16_mixed",
    "fp8_cs": "bf16_with_fp8_current_scaling_mixed",
    "fp8_mx": "bf16_with_mxfp8_mixed",
    "fp8_sc": "bf16_with_fp8_subchannel_scaling_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}
"""--compute_dtype of scripts/performance -> mixed_precision (utils/precision.py: get_precision_config)."""

PACKS = ("dataset.enable_offline_packing", "dataset.packed_sequence", "dataset.enable_in_batch_packing")
"""Fine-tuning packs its sequences unless one of these is false (recipes/common.py, _sft_common); unpacked ones are padded."""

TEXT_STEPS = ("", "gpt_step", "llm_step", "dsv4_step")
SEEING_RECIPES = (
    *("nemotron_nano_v2_vl_", "nemotron_omni_", "qwen2_audio_", "qwen3_omni_", "qwen3_vl_", "qwen35_vl_", "qwen25_vl_", "step37_"),
    *("gemma3_vl_", "gemma4_vl_", "glm_45v_", "kimi_k25_vl_", "ministral3_", "flux_", "wan_"),
)
"""scripts/training/recipe_metadata.py: TEXT_FORWARD_STEPS, RECIPE_FORWARD_STEP_PREFIXES."""

SCRIPTS = (
    "run_recipe.py",
    "run_script.py",
    "setup_experiment.py",
    "bootstrap.py",
    "custom_setup_experiment.py",
    "launch_with_nemo_run.py",
    "train.sh",
    "launch_with_sbatch.sh",
)
NAMED = ("recipe", "model", "model_recipe_name", "mr", "factory")
CONFIG_FILES = ("config_file", "config", "yaml")
MODEL_NAMES = ("hf_path", "hf_model_path", "hf_model_id", "hf_model")
SIZES = (
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "kv_channels",
    "num_experts",
    "vocab_size",
)
_SCRIPT = re.compile(r"(pretrain|finetune|sft|peft|lora)_([a-z0-9_.\-]+)\.py$")
WHOSE = "Megatron-Bridge"


class MegatronBridgeReader:
    """Recipes and ConfigContainer overrides."""

    name = "megatron-bridge"

    def recognises(self, launch: Launch) -> bool:
        """By the recipe's runner, or by ConfigContainer's own keys."""
        if not launch.words:
            return _has_own(launch.config)
        if launch.program == "nemo":
            return [word.text for word in launch.words[1:2]] == ["llm"]
        flags = launch.arguments.flags
        if launch.program in SCRIPTS and (any(flags(name) is not None for name in NAMED) or _by_size(launch) is not None):
            return True
        return _has_own(overrides_of(launch.words[1:])) or (_SCRIPT.match(launch.program) is not None and _config_has_own(launch))

    def read(self, launch: Launch) -> Reading:
        """The recipe's settings, those of the YAML file over them, then flags, then words."""
        reading = Reading()
        stated = _stated(launch, reading)
        recipe, name, place = _recipe(launch)
        _further_inputs(launch, name, place, reading)
        base = recipe_settings(recipe, Place(kind=DEFAULT, key=f"{WHOSE}'s recipe {recipe.name}" if recipe else WHOSE))
        if tunes(launch):
            base = factory_settings(base)
            warn_of_factory(launch, stated, place, reading)
        options = Options(canonical_of(base.merged(stated)), reading, WHOSE, dropout=None, complete=False)
        options.reading.state("framework.name", "megatron", place)
        _model(options, launch, recipe, name, place, stated)
        _method(options, launch, recipe, name, place, stated)
        described = "model.preset" not in reading.fields and options("hidden_size") is not None
        _world(stated, reading)
        world = reading.get("parallelism.world_size")
        read_core(options, GPT, world if isinstance(world, int) else world_of(launch), model=described)
        state_formats(options)
        if recipe is not None:
            state_own(self.name, options.settings, launch, reading)
        return reading


def _has_own(settings: Settings) -> bool:
    own = any(settings(key) is not None for key in OWN) or any(
        key.endswith("_model_parallel_size") for key in settings.leaves if key.startswith("model.")
    )
    heads = {key.partition(".")[0] for key in settings.leaves}
    return (
        own
        and "train" in heads | ({"train"} if settings.has("checkpoint") else set())
        and len(heads & set(SECTIONS)) >= 2
        and "trainer" not in heads
    )


def _config_has_own(launch: Launch) -> bool:
    named = next((stated for name in CONFIG_FILES if (stated := launch.arguments.flags(name)) is not None), None)
    if named is None or not isinstance(named.value, str | list):
        return False
    try:
        return _has_own(read_settings(launch.files.text(_first(named)), _first(named)))
    except FileError:
        return False


def _first(stated: Stated) -> str:
    """A flag's own value: words behind it may be overrides."""
    return str(stated.value[0]) if isinstance(stated.value, list) and stated.value else stated.text


def _further_inputs(launch: Launch, recipe: str, place: Place, reading: Reading) -> None:
    """A step of another kind than text's, named or the recipe's own, puts a tower of pictures or sound in front of the model."""
    stated = launch.arguments.flags("step_func")
    name = _first(stated) if stated is not None else ""
    if name not in TEXT_STEPS or (not name and recipe.startswith(SEEING_RECIPES)):
        where = stated.place if stated is not None else place
        reading.cannot_say(f"a tower of pictures or sound in front of the model ({(name or recipe)[:40]})", where)


def _stated(launch: Launch, reading: Reading) -> Settings:
    """What is stated beside the recipe, later sources last; words of NeMo 2 (trainer.strategy.…, data.…) by Bridge's names."""
    if not launch.words:
        return launch.config
    flags, settings = launch.arguments.flags, Settings()
    for name in CONFIG_FILES:
        named = flags(name)
        if named is not None and named.value is not True:
            settings = settings.merged(launch.settings_of(_first(named), reading))
    for names, path in FLAGS.items():
        for name in names:
            if (stated := flags(name)) is not None and stated.value is not True:
                settings.override(path, replace(stated, value=_first(stated)))
    compute = flags.first("compute_dtype", "c")
    if compute is not None and (formats := COMPUTES.get(_first(compute))) is not None:
        settings.override("mixed_precision", replace(compute, value=formats))
        settings.override("mixed_precision.first_last_layers_bf16", replace(compute, value=False))
    return settings.merged(overrides_of(launch.words[1:]))


def _by_size(launch: Launch) -> Stated | None:
    """A recipe by --model_name and --model_size, as the runner of performance had it until release 25.11."""
    name, size = launch.arguments.flags("model_name"), launch.arguments.flags("model_size")
    return replace(name, value=f"{_first(name)}_{_first(size)}") if name is not None and size is not None else None


def _recipe(launch: Launch) -> tuple[Recipe | None, str, Place]:
    """The recipe that a flag, or the name of the script, means; its name as written; where."""
    if not launch.words:
        return None, "", Place(kind=YAML, file=launch.config_file)
    place = replace(launch.words[0].place, kind=FLAG, key=launch.path)
    flags = launch.arguments.flags
    task = next((_first(stated) for name in ("mode", "task") if (stated := flags(name)) is not None), "pretrain")
    suffix = {"lora": "peft", "dora": "peft", "finetune": "sft"}.get(task, task)
    for stated in (_by_size(launch), *map(flags, NAMED)):
        if stated is not None and stated.value is not True:
            written = _first(stated)
            found = recipe_of(written) or recipe_of(f"{written}_{suffix}")
            return found, written, stated.place
    match = _SCRIPT.match(launch.program)
    if match is None:
        return None, "", place
    suffix = {"finetune": "sft", "lora": "peft"}.get(match[1], match[1])
    return recipe_of(f"{match[2]}_{suffix}"), f"{match[2]}_{suffix}", place


def _model(options: Options, launch: Launch, recipe: Recipe | None, name: str, place: Place, stated: Settings) -> None:
    """The model: an id that a flag gives, or the recipe's; sizes of its own cannot be laid over a preset."""
    flags = launch.arguments.flags if launch.words else Settings()
    named = next((found for each in MODEL_NAMES if (found := flags(each) or stated(each) or stated(f"model.{each}")) is not None), None)
    if named is not None and named.value is not True:
        options.reading.state("model.preset", _first(named), named.place)
    elif recipe is not None:
        options.reading.state("model.preset", recipe.model, replace(place, kind=FLAG))
    elif name:
        options.reading.cannot_say(f"the recipe {name[:60]} is not known: its model and settings are left out", place)
    elif options("hidden_size") is None:
        options.reading.cannot_say("the model is that of a recipe which is not named", place)
    if "model.preset" in options.reading.fields:
        for size in SIZES:
            if options(size) is not None:
                options.cannot_say(f"{size} of the model is not the preset's", size)
        if options.whole("mtp_num_layers"):
            options.cannot_say("layers that predict further tokens, beside a preset", "mtp_num_layers")


def _world(stated: Settings, reading: Reading) -> None:
    """`trainer.devices` × `trainer.num_nodes` of NeMo 2, whose command starts the processes itself (nemo/collections/llm/api.py)."""
    devices, nodes = stated("trainer.devices"), stated("trainer.num_nodes")
    if devices is not None and (each := count(devices)):
        reading.state("node.gpus", each, devices.place)
        reading.state("parallelism.world_size", each * max(count(nodes), 1), devices.place)


def _method(options: Options, launch: Launch, recipe: Recipe | None, name: str, place: Place, stated: Settings) -> None:
    """pretrain or sft; adapters by the mode, the recipe's name or a `peft` section."""
    flags = launch.arguments.flags if launch.words else Settings()
    words = " ".join(_first(found).lower() for key in ("mode", "task", "peft", "peft_scheme") if (found := flags(key)) is not None)
    task = words or (recipe.task if recipe else "") or name.lower() or launch.program
    adapters = any(each in task for each in ("peft", "lora", "dora")) and "pretrain" not in task
    if launch.program == "nemo":
        adapters = adapts(launch, stated)
        task = " ".join(word.text for word in launch.words[2:3]) or task
    fine = adapters or any(each in task for each in ("sft", "finetune"))
    if fine or "pretrain" in task:
        options.reading.state("method.name", "sft" if fine else "pretrain", place)
    elif (tuned := options("finetune")) is not None and truth(tuned):
        options.reading.state("method.name", "sft", tuned.place)
    if fine and (packs := stated.first(*PACKS)) is not None and not truth(packs):
        options.reading.state("batch.packed", False, packs.place)
        options.reading.state("batch.sequence_length_is", "cap", packs.place)
    read_lora(options, stated, place, on=adapters, method="dora" if "dora" in task else "lora")
