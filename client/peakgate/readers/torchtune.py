"""torchtune: `tune run <recipe> --config <name or file> key=value …`, and its YAML files.

Sources: torchtune config/_utils.py (_merge_yaml_and_cli_args: a key that names a component replaces its `_component_`, `~key` removes),
recipes/*.py at bd2a0fc7c (what each recipe reads of a config, and what it does when a key is absent), modules/peft (LORA_ATTN_MODULES).
"""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.readers import torchtune_settings
from peakgate.readers.arguments import MOST_WORDS, overrides_of
from peakgate.readers.convert import LARGEST, positive, whole, words
from peakgate.readers.launch import Launch
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import DEFAULT, LAUNCHER, Place, Stated
from peakgate.readers.reading import Reading, apply
from peakgate.readers.references import resolved
from peakgate.readers.settings import Settings
from peakgate.readers.switches import truth
from peakgate.readers.torchtune_configs import config_of
from peakgate.readers.torchtune_models import BLOCKS, PRESETS, SIZES, TIED, feed_forward, is_adapted, is_quantised, plain

NAME = "torchtune"
RECIPE = re.compile(
    r"((full|lora|qat|qat_lora|early_exit|grpo_full|async_grpo_full)_finetune|_dpo_|_kd_|knowledge_distillation|ppo_full|qat_)"
)
OTHER = re.compile(r"(^|[/_ ])(generate|eleuther_eval|quantize)")
"""Recipes that train nothing."""
NOT_TRAINED = ("tasks", "prompt", "max_new_tokens", "quantizer")
"""Keys of their configs."""
METHODS = {
    "dpo": "dpo",
    "ppo": "ppo",
    "grpo": "grpo",
    "knowledge_distillation": "distill",
    "kd": "distill",
}
"""Part of a recipe's name -> method."""
LOSSES = {"dpoloss": "dpo", "rsoloss": "dpo", "simpoloss": "dpo", "ppoloss": "ppo", "grpo": "grpo", "kl": "distill"}
"""Part of a loss's name -> method, for recipes of one's own."""
PLANS = ("base_llama_tp_plan", "fp8_llama_tp_plan")
"""torchtune/models/llama3/_parallelism.py: norms are SequenceParallel, and what lies between layers is sharded along the sequence."""
WITHOUT_WORDS = {
    "qat": "quantisation-aware training: every weight is quantised for its product",
    "early_exit": "losses of early exits",
    "grpo": "generation on GPUs of its own",
    "ppo": "value and reward models of its own",
}
"""Part of a recipe's name -> what no field of the document says."""


class Torchtune:
    """The reader."""

    name = NAME

    def recognises(self, launch: Launch) -> bool:
        """A launch by `tune run`, or a config whose components are torchtune's."""
        if "tune" in launch.launchers:
            return not OTHER.search(launch.program)
        component = launch.config.first("model._component_", "policy_model._component_")
        if component is not None and component.text.startswith("torchtune."):
            return launch.config.has("optimizer") or not any(map(launch.config.has, NOT_TRAINED))
        return (
            bool(launch.words)
            and bool(RECIPE.search(launch.program))
            and launch.program.endswith(".py")
            and _config_word(launch) is not None
        )

    def read(self, launch: Launch) -> Reading:
        """What the launch says."""
        reading = Reading()
        settings = _settings(launch, reading)
        recipe = _recipe(launch)
        reading.default("framework.name", NAME, "this reader")
        _method(recipe, settings, reading)
        _model(settings, reading)
        _adapters(settings, recipe, reading)
        apply(torchtune_settings.ROWS, settings, reading)
        torchtune_settings.read(settings, reading)
        _parallel(recipe, settings, launch, reading)
        if not launch.program.endswith(".py"):
            state_own(NAME, settings, launch, reading)
        return reading


def _recipe(launch: Launch) -> str:
    """The recipe's name; of a config alone, or of a recipe of one's own, what the config is called says it."""
    name = (launch.program or launch.config_file.replace("\\", "/").rsplit("/", 1)[-1]).removesuffix(".py").lower()
    named = _config_word(launch)
    return name if named is None or RECIPE.search(name) else f"{name} {named.text.lower()}"


def _config_word(launch: Launch) -> Stated | None:
    given = launch.words[:MOST_WORDS]
    for index, word in enumerate(given):
        if word.text.startswith("--config="):
            return Stated(word.text.partition("=")[2], replace(word.place, key="--config"))
        if word.text == "--config" and index + 1 < len(given):
            return Stated(given[index + 1].text, replace(word.place, key="--config"))
    return None


def _settings(launch: Launch, reading: Reading) -> Settings:
    named = _config_word(launch)
    settings = launch.config
    if named is not None:
        there = launch.settings_of(named.text, Reading())
        own = config_of(named.text)
        settings = there if there.leaves or own is None else own
        if not settings.leaves:
            launch.settings_of(named.text, reading)
            reading.cannot_say(f"what the config {named.text[:80]} says is not known", named.place)
    settings = settings.merged(Settings())
    _remove(launch, settings)
    for path, stated in overrides_of(word for word in launch.words[1:MOST_WORDS] if not word.text.startswith(("-", "~"))).leaves.items():
        component = f"{path}._component_"
        settings.override(component if component in settings.leaves else path, _null(stated))
    return resolved(settings)


def _remove(launch: Launch, settings: Settings) -> None:
    gone = {word.text[1:].partition("=")[0] for word in launch.words[1:MOST_WORDS] if word.text.startswith("~")}
    for path in list(settings.leaves) if gone else ():
        parts = path.split(".")
        if any(".".join(parts[: end + 1]) in gone for end in range(len(parts))):
            del settings.leaves[path]


def _null(stated: Stated) -> Stated:
    return replace(stated, value=None) if stated.text in ("None", "null") else stated


def _names(recipe: str, part: str) -> bool:
    """Whether a recipe's name has a word, or words joined by _."""
    return re.search(rf"(^|[^a-z0-9]){part}([^a-z0-9]|$)", recipe) is not None


def _method(recipe: str, settings: Settings, reading: Reading) -> None:
    """The recipe's own method, or its loss's; what it holds beside the model is said or not said."""
    place = Place(kind=LAUNCHER, key=f"tune run {recipe}") if recipe else Place(kind=DEFAULT, key="torchtune")
    method = next((word for part, word in METHODS.items() if _names(recipe, part)), "sft")
    loss = settings.first("kd_loss._component_", "loss._component_")
    if method == "sft" and loss is not None:
        last = loss.text.rsplit(".", 1)[-1].lower()
        method = next((word for part, word in LOSSES.items() if part in last), "sft")
        place = loss.place if method != "sft" else place
    if method == "sft":
        reading.default("method.name", "sft", "torchtune's recipes")
    else:
        reading.state("method.name", method, place)
    if method == "dpo":
        adapted = is_adapted(settings.leaves["model._component_"].text) if "model._component_" in settings.leaves else "lora" in recipe
        reading.default("method.reference", "adapter" if adapted else "full", f"torchtune's recipe {recipe}")
        reading.default("method.sequences_per_example", 2, f"torchtune's recipe {recipe}")
    if method == "distill" and (teacher := settings("teacher_model._component_")) is not None:
        _builder(teacher, "method.teacher", settings.under("teacher_model"), reading)
    for part, what in WITHOUT_WORDS.items():
        if _names(recipe, part) or part == method:
            reading.cannot_say(what, place)


def _model(settings: Settings, reading: Reading) -> None:
    stated = settings.first("model._component_", "policy_model._component_")
    if stated is None:
        return
    section = "model" if settings("model._component_") is stated else "policy_model"
    _builder(stated, "model", settings.under(section), reading)
    if "vision" in stated.text or "llama4" in stated.text:
        reading.cannot_say("the tower of pictures, and which of the model's parts are trained", stated.place)
    if "reward" in stated.text:
        reading.cannot_say("a head of rewards", stated.place)


def _builder(stated: Stated, path: str, arguments: Settings, reading: Reading) -> None:
    name = plain(stated.text)
    if name in PRESETS:
        reading.state(f"{path}.preset", PRESETS[name], stated.place)
    elif name in BLOCKS:
        _sizes(name, stated, path, arguments, reading)
    else:
        reading.cannot_say(f"the sizes of {stated.text[:80]} are not known", stated.place)


def _sizes(name: str, stated: Stated, path: str, arguments: Settings, reading: Reading) -> None:
    """A component builder, whose arguments are the sizes."""
    reading.state(f"{path}.transformer.block", BLOCKS[name], stated.place)
    found: dict[str, int] = {}
    for argument, field in SIZES.items():
        if (size := arguments(argument)) is None:
            continue
        try:
            found[field] = whole(size)
            reading.state(f"{path}.transformer.{field}", found[field], size.place)
        except ValueError as error:
            reading.warnings.append(f"{path}.transformer.{field}: {size.text[:40]!r} cannot be read ({size.place}): {error}")
    if "ffn_hidden_size" not in found and 0 < found.get("hidden_size", 0) < LARGEST >> 8 and name.startswith("llama"):
        reading.default(f"{path}.transformer.ffn_hidden_size", feed_forward(found["hidden_size"]), "torchtune: scale_hidden_dim_for_mlp")
    tied = arguments("tie_word_embeddings")
    if tied is not None:
        reading.state(f"{path}.transformer.tied_embeddings", tied.text == "true", tied.place)
    elif name in TIED:
        reading.default(f"{path}.transformer.tied_embeddings", True, f"torchtune's {name}")


def _adapters(settings: Settings, recipe: str, reading: Reading) -> None:
    """The arguments of a builder of adapters."""
    component = settings("model._component_")
    if component is None or not (is_adapted(component.text) or settings("model.lora_rank") is not None):
        return
    listed = settings("model.lora_attn_modules")
    targets = words(listed)
    for key, names in (("apply_lora_to_mlp", ("gate_proj", "up_proj", "down_proj")), ("apply_lora_to_output", ("lm_head",))):
        stated = settings(f"model.{key}")
        if stated is not None and truth(stated):
            targets += names
    place = (listed or component).place
    if targets:
        reading.state("lora.targets", list(targets), place)
    apply(torchtune_settings.ADAPTERS, settings, reading)
    reading.default("lora.rank", 8, "torchtune's builders: lora_rank = 8")
    base = settings("model.quantize_base")
    if is_quantised(component.text) or truth(base):
        reading.state("lora.base_dtype", "nf4", (base or component).place)
    if "full" in recipe and "lora" not in recipe:
        reading.warnings.append(f"lora: {recipe} trains every parameter of a model with adapters ({component.place})")


def _degree(settings: Settings, key: str, reading: Reading) -> int | None:
    stated = settings(key)
    try:
        return positive(stated) if stated is not None else None
    except ValueError as error:
        reading.warnings.append(f"{key}: {stated.text[:40] if stated else ''!r} cannot be read: {error}")
        return None


def _parallel(recipe: str, settings: Settings, launch: Launch, reading: Reading) -> None:
    """One device, or fully_shard over what tensor and context parallelism leave."""
    if "single_device" in recipe:
        reading.default("parallelism.world_size", 1, "torchtune's recipes for a single device")
        reading.default("parallelism.sharding", "none", "torchtune's recipes for a single device")
        return
    if launch.around.get("parallelism.world_size") == 1:
        reading.default("parallelism.sharding", "none", "torchtune on one rank")
        return
    replicate, shard = _degree(settings, "data_parallel_replicate_dim", reading), _degree(settings, "data_parallel_shard_dim", reading)
    if replicate is not None and replicate > 1:
        stated = settings.leaves["data_parallel_replicate_dim"]
        reading.state("parallelism.sharding", "ddp" if shard == 1 else "hsdp", stated.place)
    elif shard is not None or "distributed" in recipe:
        reading.default("parallelism.sharding", "fsdp", "torchtune's distributed recipes: fully_shard")
    if shard is not None and shard > 1:
        reading.state("parallelism.shard_degree", shard, settings.leaves["data_parallel_shard_dim"].place)
    plan = settings("tensor_parallel_plan._component_")
    if plan is not None and plan.text.rpartition(".")[2] in PLANS and reading.get("parallelism.tensor") not in (None, 1):
        reading.state("parallelism.sequence_parallel", True, plan.place)
    layers = settings("custom_sharded_layers")
    if layers is not None and words(layers):
        reading.cannot_say("embedding or head as units of their own", layers.place)
