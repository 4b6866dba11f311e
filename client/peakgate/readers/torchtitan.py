"""torchtitan: TOML files, flags `--section.key`, run_train.sh, and configs in Python (`--module llama3 --config llama3_8b`).

Sources: torchtitan config/manager.py (flags win over the file, which wins over the defaults), config/job_config.py at v0.2.2,
config_manager.py before it, config/configs.py at b5bcd76c6, run_train.sh of each age, distributed/activation_checkpoint.py
(`_apply_layer_sac`: every n-th layer is rebuilt).
"""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.readers import torchtitan_age, torchtitan_parallel, torchtitan_python, torchtitan_settings
from peakgate.readers import torchtitan_configs as configs
from peakgate.readers.arguments import MOST_WORDS
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.state import KNOWN_SCRIPTS
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import DEFAULT, Stated
from peakgate.readers.reading import Reading, Scalar, apply
from peakgate.readers.settings import Settings
from peakgate.readers.torchtitan_models import sizes_of

NAME = "torchtitan"
DRY = ("", "true", "fake_backend", "local_tensor")
"""Modes of communication that train nothing; run_train.sh has a branch for them, whose variable is empty otherwise."""
_MODULE = re.compile(r"(^|[./])torchtitan([./]\w+)*[./]?train(\.py)?$")
SECTIONS = frozenset({
    "job", "model", "optimizer", "training", "parallelism", "activation_checkpoint", "compile", "quantize", "float8", "mx", "experimental",
    "checkpoint", "validation", "validator", "fault_tolerance", "hf_transformers", "module", "config",
})  # fmt: skip
"""Sections that are read, and the two flags that name a config in Python."""
_SUBCOMMAND = re.compile(r"activation[-_]checkpoint:")
_KERNELS_OF_ITS_OWN = ("simple_fsdp", "graph_trainer", "transformers_modeling_backend", "compiler_toolkit", "autoparallel", "torchft", "ft")


class Torchtitan:
    """The reader."""

    name = NAME

    def recognises(self, launch: Launch) -> bool:
        """torchtitan's train module or script, its run script, or a TOML file with its sections."""
        flags = launch.arguments.flags
        if (mode := flags("comm.mode")) is not None and mode.text in DRY:
            return False
        if launch.program in KNOWN_SCRIPTS or _MODULE.search(launch.path) or flags("job.config_file") is not None:
            return True
        of_file = launch.config
        sized = of_file.first("training.seq_len", "training.local_batch_size", "training.batch_size")
        return sized is not None and (of_file("model.flavor") is not None or of_file.has("job"))

    def read(self, launch: Launch) -> Reading:
        """What the launch says."""
        reading = Reading()
        settings = _settings(launch, reading)
        reading.default("framework.name", NAME, "this reader")
        reading.default("method.name", "sft" if named_sft(launch) else "pretrain", "torchtitan's trainer")
        _model(settings, reading)
        torchtitan_parallel.read(settings, launch, reading)
        apply(torchtitan_settings.ROWS, settings, reading)
        torchtitan_settings.read(settings, reading)
        _checkpointing(settings, reading)
        _allocator(launch, reading)
        _own(launch, settings, reading)
        return reading


def _own(launch: Launch, settings: Settings, reading: Reading) -> None:
    """The defaults of a TOML file, or of one of torchtitan's own configs in Python; one of the submitter's may set what is not read."""
    named, flavor = _named(launch, launch.arguments.flags, "config", "CONFIG"), settings("model.flavor")
    if named is None:
        state_own(f"{NAME} toml", settings, launch, reading)
    if named is None or (flavor is not None and flavor.place.kind == DEFAULT):
        state_own(NAME, settings, launch, reading)


def named_sft(launch: Launch) -> bool:
    """Whether the config in Python is one of the fine-tuning ones, which are named so."""
    named = _named(launch, launch.arguments.flags, "config", "CONFIG")
    return named is not None and named.text.startswith("sft_")


def _settings(launch: Launch, reading: Reading) -> Settings:
    """All that is stated: defaults, then the config, then flags, under the names that hold today."""
    flags = _flags(launch)
    module, named = _named(launch, flags, "module", "MODULE"), _named(launch, flags, "config", "CONFIG")
    if named is not None and (module is not None or launch.program in KNOWN_SCRIPTS):
        base = _of_registry(module, named, launch, reading)
        reading.default("framework.version", torchtitan_age.OF_PYTHON, "torchtitan: configs in Python")
    else:
        base = configs.defaults(configs.JOB_CONFIG, "torchtitan").merged(_of_file(launch, flags, reading))
        torchtitan_age.state_version(base.merged(flags), reading)
    words = _checkpointing_word(launch)
    return torchtitan_settings.current(base).merged(torchtitan_settings.current(flags)).merged(words)


def _flags(launch: Launch) -> Settings:
    """Flags, `--section.no_key` as a key that is false; a subcommand behind a flag's value is no value."""
    flags = Settings()
    for path, given in launch.arguments.flags.leaves.items():
        if path.partition(".")[0] not in SECTIONS:
            continue
        stated = given
        if isinstance(given.value, list):
            values = [each for each in given.value if not _SUBCOMMAND.match(str(each))]
            stated = replace(given, value=values if len(values) > 1 else values[0] if values else True)
        section, _, key = path.rpartition(".")
        if key.startswith("no_") and stated.value is True:
            flags.override(f"{section}.{key.removeprefix('no_')}", replace(stated, value=False))
        else:
            flags.override(path, stated)
    return flags


def _named(launch: Launch, flags: Settings, flag: str, variable: str) -> Stated | None:
    """A flag, or the variable that run_train.sh makes it of."""
    return flags(flag) or (launch.environment(variable) if launch.program in KNOWN_SCRIPTS else None)


def _of_file(launch: Launch, flags: Settings, reading: Reading) -> Settings:
    if launch.config_file:
        return launch.config
    named = flags("job.config_file") or (launch.environment("CONFIG_FILE") if launch.program in KNOWN_SCRIPTS else None)
    if named is None:
        return Settings()
    own = configs.of_file(named.text)
    if own is not None and not _is_there(launch, named.text):
        return own
    return launch.settings_of(named.text, reading)


def _is_there(launch: Launch, path: str) -> bool:
    return bool(launch.settings_of(path, Reading()).leaves)


def _of_registry(module: Stated | None, named: Stated, launch: Launch, reading: Reading) -> Settings:
    """A function of a config registry: torchtitan's own by the table, the submitter's read without being run."""
    found = torchtitan_python.read(module.text if module else "llama3", named.text, launch, reading)
    if found is None:
        found = configs.of_registry(named.text)
    if found is None:
        reading.cannot_say(f"what the config {named.text} says is not known", named.place)
        return Settings()
    if module is not None and any(name in module.text for name in _KERNELS_OF_ITS_OWN):
        reading.cannot_say(f"{module.text} runs a step of its own", module.place)
    return found


def _checkpointing_word(launch: Launch) -> Settings:
    """tyro's subcommand `activation-checkpoint:full` (distributed/activation_checkpoint.py: ActivationCheckpointingConfig)."""
    found = Settings()
    for word in launch.words[1:MOST_WORDS]:
        if _SUBCOMMAND.match(word.text):
            mode = word.text.partition(":")[2].replace("-", "_")
            found.override("activation_checkpoint.mode", Stated(mode, replace(word.place, key=word.text)))
            found.override("activation_checkpoint.selective_ac_option", Stated("op", replace(word.place, key=word.text)))
    return found


def _model(settings: Settings, reading: Reading) -> None:
    name, flavor = settings("model.name"), settings("model.flavor")
    if (other := settings("hf_transformers.model")) is not None:
        reading.state("model.preset", other.text, other.place)
        reading.cannot_say("transformers' own layers inside torchtitan", other.place)
        return
    if name is None or flavor is None:
        return
    base = re.sub(r"_(simple_fsdp|auto_parallel|ft|compiler_toolkit)$", "", name.text)
    sizes = sizes_of(base, flavor.text)
    if base != name.text:
        reading.cannot_say(f"{name.text} runs a step of its own", name.place)
    if sizes is None and "/" in flavor.text:
        reading.state("model.preset", flavor.text, flavor.place)
    elif sizes is None:
        reading.state("model.hf_config", {"model_type": base}, name.place)
        reading.cannot_say(f"the sizes of {name.text} {flavor.text} are not known", flavor.place)
    if sizes is None:
        return
    value: Scalar
    for field, value in sizes.items():
        reading.state(f"model.transformer.{field}", value, flavor.place)


def _checkpointing(settings: Settings, reading: Reading) -> None:
    """The mode; a number as selective_ac_option rebuilds every n-th layer whole, which is told as so many layers of each stage."""
    mode, option = settings("activation_checkpoint.mode"), settings("activation_checkpoint.selective_ac_option")
    if mode is None:
        return
    word = mode.text.strip().lower().replace("_", "-")
    every = option.text.strip() if word == "selective" and option is not None else "op"
    if word == "selective" and every != "op":
        _every(every, option or mode, reading)
    elif word in ("none", "full", "selective", "memory-budget"):
        reading.state("checkpointing.mode", word, mode.place)
    else:
        reading.warnings.append(f"checkpointing.mode: {mode.text[:40]!r} is no mode of torchtitan ({mode.place})")


def _every(every: str, option: Stated, reading: Reading) -> None:
    if not every.isdigit() or len(every) > 4:
        reading.warnings.append(f"checkpointing.mode: {every[:40]!r} is neither op nor a number ({option.place})")
        return
    reading.state("checkpointing.mode", "full", option.place)
    layers = reading.get("model.transformer.layers")
    if int(every) > 1 and isinstance(layers, int):
        stages = reading.get("parallelism.pipeline")
        rebuilt = layers // (stages if isinstance(stages, int) and stages > 0 else 1) // int(every)
        reading.state("checkpointing.layers", max(rebuilt, 1), option.place)
        if rebuilt == 0:
            reading.cannot_say(f"one layer in {every} is checkpointed", option.place)


def _allocator(launch: Launch, reading: Reading) -> None:
    """run_train.sh sets expandable segments; a bare launch of the module does not, unless a variable does, which the launchers read."""
    if launch.program in KNOWN_SCRIPTS:
        reading.default("framework.expandable_segments", True, f"torchtitan's {launch.program}")
    elif launch.words:
        reading.default("framework.expandable_segments", False, "torch's allocator")
