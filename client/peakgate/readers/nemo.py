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
from peakgate.readers.own_defaults import state_own
from peakgate.readers.place import FLAG, YAML, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

OWN = ("micro_batch_size", "tensor_model_parallel_size", "encoder_seq_length", "megatron_amp_O2", "global_batch_size", "mcore_gpt")
WHOSE = "NeMo"
OTHER = (
    "mm_cfg",
    "vision",
    "unet_config",
    "unet",
    "patch_dim",
    "img_h",
    "cond_stage_config",
    "nerf",
    "first_stage_config",
    "vision_pretraining",
)
"""Settings that only models of pictures, video and space have."""

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
        settings, complete = _settings(launch, reading)
        config, stage = resolved(settings)
        options = Options(canonical_of(config), reading, WHOSE, complete=complete)
        place = replace(launch.words[0].place, kind=FLAG, key=launch.path) if launch.words else Place(kind=YAML, file=launch.config_file)
        reading.state("framework.name", "megatron", place)
        kind = _kind(launch, config)
        _world(config, reading)
        options.amp = _amp(config)
        world = reading.get("parallelism.world_size")
        read_core(options, kind, world if isinstance(world, int) else world_of(launch), model=_described(options, config, place))
        _method(options, config, stage, launch, place)
        state_formats(options)
        if complete:
            state_own(self.name, options.settings, launch, reading)
        return reading


def _is_nemo(settings: Settings) -> bool:
    for prefix in ("", *(f"{stage}." for stage in STAGES)):
        if any(settings(f"{prefix}model.{name}") is not None for name in OWN) and (
            settings.has(f"{prefix}trainer") or settings.has(f"{prefix}model.optim")
        ):
            return not _only_tests(settings, f"{prefix}model.")
    return False


def _only_tests(settings: Settings, model: str) -> bool:
    """Whether a model has a set to be tested on, and neither one to train on nor an optimizer."""
    return settings.has(f"{model}data.test_ds") and not settings.has(f"{model}data.train_ds") and not settings.has(f"{model}optim")


def _settings(launch: Launch, reading: Reading) -> tuple[Settings, bool]:
    """All settings, and whether none of a config is missing."""
    if not launch.words:
        return launch.config, True
    words = overrides_of(launch.words[1:])
    for stage in STAGES:
        named = words(stage)
        if named is not None and named.text not in ("null", "none"):
            chosen = _config(launch, f"{stage}/{named.text}", reading)
            base = Settings({f"{stage}.{path}": stated for path, stated in chosen.leaves.items()})
            over = Settings({path: stated for path, stated in words.leaves.items() if path != stage})
            return base.merged(over), bool(chosen.leaves)
    flags = launch.arguments.flags
    given = flags.first("config_name", "cn")
    own = DEFAULT_CONFIGS.get(launch.program.removesuffix(".py"), "")
    name = _first(given) if given is not None and given.value is not True else own
    chosen = _config(launch, name, reading) if name else Settings()
    return chosen.merged(words), bool(chosen.leaves) or not name


def _config(launch: Launch, name: str, reading: Reading) -> Settings:
    """A config of the folder that --config-path names, or of `conf` beside the script; one that only the container has is a warning."""
    flags = launch.arguments.flags
    stated = flags.first("config_path", "config_dir", "cp", "cd")
    folders = [_first(stated)] if stated is not None and stated.value is not True else []
    folders.append("conf")
    beside = launch.path.rpartition("/")[0]
    places = [f"{beside}/{folder}" for folder in folders if beside and not folder.startswith("/")] + folders
    paths = [f"{folder.rstrip('/')}/{name}" + ("" if name.endswith((".yaml", ".yml")) else ".yaml") for folder in places]
    for path in paths:
        try:
            launch.files.text(path)
        except FileError:
            continue
        return launch.settings_of(path, reading)
    return launch.settings_of(paths[0], reading)


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
    other = next((name for name in OTHER if config.has(f"model.{name}")), "")
    if other:
        options.reading.cannot_say("a model of pictures, sound or video", replace(place, key=f"model.{other}"))
        return False
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
