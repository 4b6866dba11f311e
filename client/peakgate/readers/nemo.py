"""NeMo 1: YAML of NeMo's Megatron scripts and of the NeMo Framework Launcher, with Hydra's words over it.

Sources: NeMo r1.x examples/nlp/language_modeling/conf/megatron_gpt_config.yaml and its like, nemo/collections/nlp/models/language_modeling/
megatron_base_model.py; NeMo-Framework-Launcher at 26e42fa9, launcher_scripts/conf/{training,fine_tuning,peft}.
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.readers.arguments import overrides_of
from peakgate.readers.files import FileError
from peakgate.readers.launch import Launch
from peakgate.readers.megatron_bridge_lora import state_adapters, state_formats
from peakgate.readers.megatron_core.model import BERT, GPT, T5
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.placement import world_of
from peakgate.readers.megatron_core.read import read_core
from peakgate.readers.nemo_settings import STAGES, canonical_of, resolved
from peakgate.readers.place import FLAG, YAML, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

OWN = ("micro_batch_size", "tensor_model_parallel_size", "encoder_seq_length", "megatron_amp_O2", "global_batch_size", "mcore_gpt")
WHOSE = "NeMo"
DEFAULT_CONFIGS = {
    "megatron_gpt_pretraining": "megatron_gpt_config",
    "megatron_bert_pretraining": "megatron_bert_config",
    "megatron_t5_pretraining": "megatron_t5_config",
    "megatron_gpt_finetuning": "megatron_gpt_finetuning_config",
    "megatron_gpt_sft": "megatron_gpt_sft",
    "megatron_gpt_peft_tuning": "megatron_gpt_peft_tuning_config",
    "megatron_llama_pretraining": "megatron_llama_config",
}
"""hydra_runner(config_path="conf", config_name=…) of each script."""


class NemoReader:
    """NeMo's configs."""

    name = "nemo"

    def recognises(self, launch: Launch) -> bool:
        """By the script, or by `trainer` and `model` sections with Megatron's settings."""
        if not launch.words:
            return _is_nemo(launch.config)
        program = launch.program.removesuffix(".py")
        words = overrides_of(launch.words[1:])
        if program in DEFAULT_CONFIGS or (
            program.startswith("megatron_") and (launch.arguments.flags("config_name") is not None or _is_nemo(words))
        ):
            return True
        if program == "main" and any(words(stage) is not None for stage in STAGES):
            return True
        return _is_nemo(words) and words.has("trainer")

    def read(self, launch: Launch) -> Reading:
        """The config, with Hydra's words over it."""
        reading = Reading()
        config, stage = resolved(_settings(launch, reading))
        options = Options(canonical_of(config), reading, WHOSE)
        place = replace(launch.words[0].place, kind=FLAG, key=launch.path) if launch.words else Place(kind=YAML, file=launch.config_file)
        reading.state("framework.name", "megatron", place)
        kind = _kind(launch, config)
        _world(config, reading)
        options.amp = _amp(config)
        world = reading.get("parallelism.world_size")
        read_core(options, kind, world if isinstance(world, int) else world_of(launch), model=_described(options, config, place))
        _method(options, config, stage, launch, place)
        state_formats(options)
        return reading


def _is_nemo(settings: Settings) -> bool:
    for prefix in ("", *(f"{stage}." for stage in STAGES)):
        if any(settings(f"{prefix}model.{name}") is not None for name in OWN) and (
            settings.has(f"{prefix}trainer") or settings.has(f"{prefix}model.optim")
        ):
            return True
    return False


def _settings(launch: Launch, reading: Reading) -> Settings:
    if not launch.words:
        return launch.config
    words = overrides_of(launch.words[1:])
    for stage in STAGES:
        named = words(stage)
        if named is not None and named.text not in ("null", "none"):
            folder = _folder(launch) or "conf"
            chosen = launch.settings_of(f"{folder}/{stage}/{named.text}.yaml", reading)
            base = Settings({f"{stage}.{path}": stated for path, stated in chosen.leaves.items()})
            return base.merged(Settings({path: stated for path, stated in words.leaves.items() if path != stage}))
    return _base(launch, reading).merged(words)


def _folder(launch: Launch) -> str:
    flags = launch.arguments.flags
    stated = flags("config_path") or flags("config_dir") or flags("cp") or flags("cd")
    return _first(stated) if stated is not None and stated.value is not True else ""


def _base(launch: Launch, reading: Reading) -> Settings:
    """--config-name, or the script's own in its `conf` folder; one that only the container has is a warning."""
    flags = launch.arguments.flags
    named = flags("config_name") or flags("cn")
    name = _first(named) if named is not None and named.value is not True else DEFAULT_CONFIGS.get(launch.program.removesuffix(".py"), "")
    if not name:
        return Settings()
    name = name if name.endswith((".yaml", ".yml")) else f"{name}.yaml"
    beside = launch.path.rpartition("/")[0]
    folders = [_folder(launch)] if _folder(launch) else []
    folders += [f"{beside}/{folder}" if beside and not folder.startswith("/") else folder for folder in (*folders, "conf")]
    for folder in folders:
        path = f"{folder.rstrip('/')}/{name}"
        try:
            launch.files.text(path)
        except FileError:
            continue
        return launch.settings_of(path, reading)
    return launch.settings_of(f"{folders[0]}/{name}", reading)


def _first(stated: Stated) -> str:
    return str(stated.value[0]) if isinstance(stated.value, list) and stated.value else stated.text


def _kind(launch: Launch, config: Settings) -> str:
    name = f"{launch.program} {launch.config_file}".lower()
    if config("model.encoder.num_layers") is not None or "t5" in name:
        return T5
    return BERT if "bert" in name or config("model.bert_binary_head") is not None else GPT


def _world(config: Settings, reading: Reading) -> None:
    """trainer.devices × trainer.num_nodes; -1 and `auto` are known at run time only."""
    devices, nodes = config("trainer.devices"), config("trainer.num_nodes")
    count = _whole(devices)
    if devices is None or count is None:
        return
    reading.state("node.gpus", count, devices.place)
    reading.state("parallelism.world_size", count * (_whole(nodes) or 1), devices.place)


def _whole(stated: Stated | None) -> int | None:
    text = stated.text.strip() if stated is not None else ""
    return int(text) if text.isdigit() and len(text) < 8 and int(text) > 0 else None


def _amp(config: Settings) -> str:
    """Without megatron_amp_O2 weights stay fp32 and Lightning's plugin casts inside operations (megatron_base_model.py)."""
    precision, level = config("trainer.precision"), config("model.megatron_amp_O2")
    word = precision.text.lower() if precision is not None else ""
    if level is not None and level.text.lower() == "true":
        return ""
    return "amp-bf16" if word.startswith("bf16") else "amp-fp16" if word.startswith("16") else ""


def _described(options: Options, config: Settings, place: Place) -> bool:
    """Whether the config holds the model's sizes; one that is restored has them inside its archive."""
    if options("hidden_size") is not None:
        return True
    restored = config.first("model.restore_from_path", "restore_from_path")
    if restored is not None:
        options.reading.cannot_say("the model's sizes are inside the archive that is restored", restored.place)
    else:
        options.reading.cannot_say("the model's sizes are in a config that is not at hand", place)
    return False


def _method(options: Options, config: Settings, stage: str, launch: Launch, place: Place) -> None:
    """Tuning reads `model.data.train_ds`, whose sequences are padded unless they are packed."""
    tuned = (
        config.has("model.data.train_ds")
        or stage in ("peft", "fine_tuning")
        or any(each in launch.program for each in ("sft", "tun", "peft"))
    )
    options.reading.state("method.name", "sft" if tuned else "pretrain", place)
    if not tuned:
        return
    packed = config("model.data.train_ds.packed_sequence")
    if packed is None or packed.text.lower() != "true":
        options.reading.default("batch.packed", False, WHOSE)
        options.reading.default("batch.sequence_length_is", "cap", WHOSE)
    scheme = config("model.peft.peft_scheme")
    word = scheme.text.lower().strip() if scheme is not None else "none"
    if scheme is None or word in ("none", "null", ""):
        return
    if "lora" in word:
        state_adapters(options, config.under("model.peft.lora_tuning"), scheme.place, method="lora", every=("attention_qkv",))
    else:
        options.reading.cannot_say(f"adapters of the kind {word[:40]}", scheme.place)
