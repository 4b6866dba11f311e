"""LitGPT: `litgpt finetune_lora …`, `litgpt pretrain …`, its YAML files, and the Lit-GPT scripts of 2023 before it.

Sources: litgpt __main__.py, args.py (TrainArgs), finetune/{lora,full,adapter,adapter_v2}.py, pretrain.py and utils.py at 26857050
(get_default_supported_precision: mixed where it trains; instantiate_bnb_optimizer); finetune/lora.py of Lit-GPT in November 2023, whose
settings are constants of the script.
"""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.readers import convert
from peakgate.readers.files import FileError
from peakgate.readers.launch import Launch
from peakgate.readers.litgpt_adapters import ADAPTED, adapters_of
from peakgate.readers.litgpt_ages import SCRIPTS, SUBCOMMANDS, TODAY, Age
from peakgate.readers.litgpt_models import model_of
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import DEFAULT, PYTHON, Place, Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

NAME = "litgpt"
WORLD = "parallelism.world_size"
_SCRIPT = re.compile(
    r"(^|[/.])(finetune|pretrain|litgpt)[/.](lora|full|adapter|adapter_v2|pretrain|tinyllama|redpajama|openwebtext)(\.py)?$"
)
COMMANDS = {
    "finetune": "lora",
    "finetune_lora": "lora",
    "finetune_full": "full",
    "finetune_adapter": "adapter",
    "finetune_adapter_v2": "adapter_v2",
    "pretrain": "pretrain",
}
ACCUMULATION = ("train.global_batch_size", "batch_size")
PRECISIONS = {"bf16-true": "bf16", "bf16-mixed": "amp-bf16", "16-mixed": "amp-fp16", "32-true": "fp32", "32": "fp32"}
SHARDED = {"amp-bf16": "fsdp-bf16"}
"""Mixed precision under FSDP: shards are cast as they are gathered (lightning fabric/plugins/precision/fsdp.py)."""
ROWS = (
    Row("train.micro_batch_size", "batch.micro_batch_size", convert.positive),
    Row("train.max_seq_length", "batch.sequence_length", convert.positive),
)
OPTIMIZERS = {
    "adamw": "adamw",
    "adam": "adam",
    "sgd": "sgd",
    "adafactor": "adafactor",
    "lion": "lion",
    "adamw8bit": "adamw-8bit",
    "pagedadamw": "paged-adamw",
    "pagedadamw8bit": "paged-adamw-8bit",
}
CONSTANTS = ("micro_batch_size", "batch_size", "devices", "lora_r", "lora_dropout", *ADAPTED)


class Litgpt:
    """The reader."""

    name = NAME

    def recognises(self, launch: Launch) -> bool:
        """The command with a verb that trains, a script of the repository, or a file with its `train` section."""
        words = [word.text for word in launch.words[1:3]]
        if launch.program == "litgpt":
            return bool(words) and words[0] in COMMANDS
        if _SCRIPT.search(launch.path):
            return True
        config = launch.config
        named = config.first("checkpoint_dir", "model_name", "lora_r")
        return config("train.micro_batch_size") is not None and named is not None

    def read(self, launch: Launch) -> Reading:
        """What the launch says."""
        reading = Reading()
        kind, age, words = _kind(launch)
        settings = _settings(launch, age, words, reading)
        kind = kind or _kind_of(settings)
        reading.default("framework.name", NAME, "this reader")
        if age.version:
            reading.default("framework.version", age.version, age.whose)
        reading.default("method.name", "pretrain" if kind == "pretrain" else "sft", age.whose)
        model_of(settings, launch, reading)
        apply(ROWS, settings, reading)
        reading.default("batch.micro_batch_size", age.micro_batch, age.whose)
        world = _world(settings, age, launch, reading)
        _accumulation(settings, age, world, reading)
        _precision(settings, kind, world, reading)
        _optimizer(settings, kind, reading)
        adapters_of(settings, kind, reading)
        _sharding(settings, kind, world, age, reading)
        _pretraining(kind, age, reading)
        if kind != "pretrain" or not age.script:
            state_own(NAME, settings, launch, reading)
            state_own(f"{NAME} {'pretrain' if kind == 'pretrain' else 'finetune'}", settings, launch, reading)
        return reading


def _pretraining(kind: str, age: Age, reading: Reading) -> None:
    """Texts are joined to full sequences and the model is compiled; examples of the others are padded (litgpt data/base.py:
    get_sft_collate_fn)."""
    joined = kind == "pretrain"
    if reading.get("batch.sequence_length") is not None:
        whose = f"litgpt's data: {'joined' if joined else 'padded'}"
        reading.default("batch.sequence_length_is", "exact" if joined else "cap", whose)
    if joined:
        compiled = not age.script or age is SCRIPTS["tinyllama"]
        reading.default("framework.compile", compiled, f"{age.whose}: torch.compile(model)")


def _kind(launch: Launch) -> tuple[str, Age, list[Stated]]:
    """What is run, how old its defaults are, and the positional words behind the verb."""
    positional = list(launch.arguments.positional)
    if launch.program == "litgpt":
        kind = COMMANDS[launch.words[1].text]
        rest = positional[1:]
        if kind == "lora" and rest and rest[0].text in ("lora", "full", "adapter", "adapter_v2"):
            return rest[0].text, SUBCOMMANDS, rest[1:]
        return kind, TODAY.get(kind, TODAY[""]), rest
    if launch.words:
        match = _SCRIPT.search(launch.path)
        stem = match[3] if match else ""
        kind = "pretrain" if match and (match[2] == "pretrain" or stem == "pretrain") else stem
        packaged = "litgpt" in re.split(r"[/.]", launch.path)
        return kind, TODAY.get(kind, TODAY[""]) if packaged else SCRIPTS.get(stem, SCRIPTS["lora"]), positional
    return "", TODAY["pretrain" if launch.config("model_name") is not None else ""], []


def _kind_of(settings: Settings) -> str:
    if settings.first("model_name", "initial_checkpoint_dir") is not None and settings("checkpoint_dir") is None:
        return "pretrain"
    return "lora" if settings("lora_r") is not None else "full"


def _settings(launch: Launch, age: Age, words: list[Stated], reading: Reading) -> Settings:
    settings = _constants(launch) if age.script else launch.config
    named = launch.arguments("config")
    if named is not None:
        settings = settings.merged(launch.settings_of(named.text, reading))
    settings = settings.merged(launch.arguments.flags)
    if words:
        key = "model_name" if age is TODAY["pretrain"] else "checkpoint_dir"
        settings.override(key, replace(words[0], place=replace(words[0].place, key=key)))
    for old, new in (("micro_batch_size", "train.micro_batch_size"), ("max_seq_length", "train.max_seq_length")):
        if old in settings.leaves and new not in settings.leaves:
            settings.override(new, settings.leaves[old])
    return settings


def _constants(launch: Launch) -> Settings:
    """The constants of a script of 2023, where it is at hand."""
    found = Settings()
    try:
        text = launch.files.text(launch.path)
    except FileError:
        return found
    for number, line in enumerate(text.splitlines(), start=1):
        match = re.match(r"(\w+)\s*(?::\s*\w+\s*)?=\s*([\w.\-]+)\s*(#.*)?$", line)
        if match and match[1] in CONSTANTS:
            found.override(match[1], Stated(match[2], Place(kind=PYTHON, key=match[1], file=launch.path, line=number)))
    return found


def _whole(settings: Settings, otherwise: int, *keys: str) -> int:
    stated = settings.first(*keys)
    try:
        return convert.whole(stated) if stated is not None else otherwise
    except ValueError:
        return otherwise


def _world(settings: Settings, age: Age, launch: Launch, reading: Reading) -> int:
    """devices × num_nodes; 0 where devices are counted at run time."""
    stated = settings("devices")
    nodes = max(_whole(settings, 1, "num_nodes"), 1)
    devices = _whole(settings, 0 if stated is not None else age.devices, "devices")
    around = launch.own.get(WORLD) or launch.around.get(WORLD)
    place = stated.place if stated is not None else Place(kind=DEFAULT, key=f"{age.whose}: devices = {age.devices or 'auto'}")
    if (stated is None or devices <= 0) and isinstance(around, int) and around > 0:
        return around
    if devices <= 0 and isinstance(gpus := launch.around.get("node.gpus"), int):
        devices, place = gpus, launch.around.fields["node.gpus"].place
    if devices <= 0:
        if settings("quantize") is None:  # which litgpt refuses on more than one
            reading.cannot_say(f"how many devices {stated.text[:20] if stated is not None else 'auto'} finds: state {WORLD}", place)
        return 0
    if devices * nodes < convert.LARGEST:
        reading.state(WORLD, devices * nodes, place)
    return devices * nodes


def _accumulation(settings: Settings, age: Age, world: int, reading: Reading) -> None:
    micro = reading.get("batch.micro_batch_size")
    batch = _whole(settings, age.batch, *ACCUMULATION)
    if not isinstance(micro, int) or world <= 0 or batch <= 0:
        return
    stated = settings.first(*ACCUMULATION)
    each = age.each or (age.script and stated is not None)  # `batch_size` of a script is that of one device
    steps = max(batch // (1 if each else world) // micro, 1)
    place = stated.place if stated is not None else Place(kind=DEFAULT, key=f"{age.whose}: global_batch_size = {age.batch}")
    reading.state("batch.gradient_accumulation_steps", steps, place)


def _precision(settings: Settings, kind: str, world: int, reading: Reading) -> None:
    stated = settings("precision")
    word = stated.text.strip().lower() if stated is not None else "bf16-mixed"
    recipe = PRECISIONS.get(word)
    if "mixed" in word and (quantised := settings("quantize")) is not None:
        reading.warnings.append(f"precision: litgpt refuses {word} ({stated.place if stated else 'its default'}) with {quantised.place}")
    place = stated.place if stated is not None else Place(kind=DEFAULT, key="litgpt: get_default_supported_precision")
    if word == "16-true":
        for state in ("parameters", "gradients", "optimizer_states", "compute"):
            reading.state(f"precision.{state}", "float16", place)
        reading.state("precision.recipe", "bf16", place)
    elif recipe is None:
        reading.cannot_say(f"the precision {word[:20]}", place)
    else:
        sharded = world > 1 and kind in ("full", "pretrain")
        reading.state("precision.recipe", SHARDED.get(recipe, recipe) if sharded else recipe, place)


def _optimizer(settings: Settings, kind: str, reading: Reading) -> None:
    """A name or a class; LoRA over four bits takes bitsandbytes' paged AdamW whatever is said, which the service knows."""
    stated = settings.first("optimizer.class_path", "optimizer")
    if stated is not None:
        name = OPTIMIZERS.get(stated.text.rsplit(".", 1)[-1].strip().lower())
        if name is None:
            reading.cannot_say(f"the optimizer {stated.text[:60]}", stated.place)
            return
        reading.state("optimizer.name", name, stated.place)
    elif settings("quantize") is None:
        reading.default("optimizer.name", "adamw", "litgpt: optimizer = AdamW")
    if kind == "pretrain":
        reading.default("optimizer.implementation", "fused", "litgpt pretrain: fused on CUDA")


def _sharding(settings: Settings, kind: str, world: int, age: Age, reading: Reading) -> None:
    """More than one device shards, and rebuilds every block but in pretraining, which shards inside a node."""
    if world == 1:
        reading.default("parallelism.sharding", "none", "litgpt on one device")
    if world <= 1:
        return
    nodes = max(_whole(settings, 1, "num_nodes"), 1)
    if kind == "pretrain" and nodes > 1:
        reading.default("parallelism.sharding", "hsdp", "litgpt pretrain: HYBRID_SHARD")
        reading.default("parallelism.shard_degree", world // nodes, "litgpt pretrain: HYBRID_SHARD")
    else:
        reading.default("parallelism.sharding", "fsdp", "litgpt on more than one device")
    if kind != "pretrain":
        reading.default("checkpointing.mode", "full", "litgpt: activation_checkpointing_policy={Block}")
    if kind == "lora" and age is TODAY[""]:
        reading.default("framework.fsdp.version", 2, "litgpt finetune/lora.py: fully_shard")
