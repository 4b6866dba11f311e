"""What transformers' TrainingArguments mean, one row each.

Sources: transformers 5.24 and 4.57 training_args.py (fields and their defaults), trainer_optimizer.py (names of optimizers),
integrations/liger.py; Liger-Kernel src/liger_kernel/transformers/monkey_patch.py for which kernels a model gets.
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.readers.convert import one_of, positive
from peakgate.readers.place import Place, Stated
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.switches import switched_on, truth

ATTENTION = {
    "eager": "eager",
    "sdpa": "sdpa",
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "flash_attention_4": "flash",
    "flash_attn_2": "flash",
    "flash_attn_3": "flash",
    "flash_attention": "flash",
    "flash_attn": "flash",
    "flash": "flash",
    "fa2": "flash",
    "auto": None,
    "none": None,
}
"""transformers modeling_utils.py: AttentionInterface; None: the default."""

FLASH_SWITCHES = ("use_flash_attn", "use_flash_attention_2", "use_flash_attention", "flash_attn", "flash_attention", "use_flash_attn_2")

ROWS = (
    Row("per_device_train_batch_size", "batch.micro_batch_size", positive),
    Row("gradient_accumulation_steps", "batch.gradient_accumulation_steps", positive),
    Row("tp_size", "parallelism.tensor", positive),
    Row("ddp_bucket_cap_mb", "framework.ddp.bucket_cap_mb", positive),
)

BATCH = "transformers training_args.py: per_device_train_batch_size=8"
EVALUATION = "transformers training_args.py: per_device_eval_batch_size=8"


@dataclass(frozen=True, slots=True)
class Optim:
    """An optimizer's name and how it is implemented, empty where that is its own matter."""

    name: str
    implementation: str = ""


OPTIMIZERS = {
    "adamw_torch": Optim("adamw", "foreach"),
    "adamw_torch_fused": Optim("adamw", "fused"),
    "adamw_torch_npu_fused": Optim("adamw", "fused"),
    "adamw_apex_fused": Optim("adamw", "fused"),
    "adamw_hf": Optim("adamw", "for-loop"),
    "adafactor": Optim("adafactor"),
    "sgd": Optim("sgd"),
    "adamw_bnb_8bit": Optim("adamw-8bit"),
    "adamw_8bit": Optim("adamw-8bit"),
    "adamw_torch_8bit": Optim("adamw-8bit"),
    "paged_adamw": Optim("paged-adamw"),
    "paged_adamw_32bit": Optim("paged-adamw"),
    "paged_adamw_8bit": Optim("paged-adamw-8bit"),
    "lion_32bit": Optim("lion"),
    "lion": Optim("lion"),
    "muon": Optim("muon"),
}
"""transformers training_args.py: OptimizerNames. Every other one (GaLore, LOMO, 4 bits …) has states that no name of the document has."""


def read_arguments(settings: Settings, reading: Reading) -> None:
    """States what the arguments say, but for precision, sharding and lengths."""
    apply(ROWS, settings, reading)
    reading.default("batch.micro_batch_size", 8, BATCH)
    state_checkpointing(settings, reading)
    state_optimizer(settings, reading)
    state_attention(settings, reading)
    _evaluation(settings, reading)
    if place := switched_on(settings, "torch_compile", "torchdynamo") or _place(settings, "torch_compile_backend", "torch_compile_mode"):
        reading.state("framework.compile", value=True, place=place)
    _liger(settings, reading)
    _beyond(settings, reading)


def _place(settings: Settings, *names: str) -> Place | None:
    stated = settings.first(*names)
    return stated.place if stated is not None else None


def state_checkpointing(settings: Settings, reading: Reading) -> None:
    """Gradient checkpointing with what its keyword arguments say."""
    stated, kwargs = settings("gradient_checkpointing"), settings.under("gradient_checkpointing_kwargs")
    on = truth(stated)
    if stated is None or on is None:
        if stated is not None:
            reading.cannot_say(f"gradient_checkpointing: {stated.text[:40]} is a method of its own", stated.place)
        return
    reading.state("checkpointing.mode", "full" if on else "none", stated.place)
    reentrant = kwargs("use_reentrant") or settings("use_reentrant")
    if on and reentrant is not None and (value := truth(reentrant)) is not None:
        reading.state("checkpointing.reentrant", value, reentrant.place)
    if on and (place := switched_on(kwargs, "offload")):
        reading.state("offload.activations", "cpu", place)
    if on and (place := switched_on(kwargs, "selective")):
        reading.cannot_say("checkpoints that keep what attention puts out", place)
    every = kwargs("every_n_layers")
    if on and every is not None and every.text != "1":
        reading.cannot_say("checkpoints around every n-th layer alone", every.place)


def state_optimizer(settings: Settings, reading: Reading, name: str = "optim") -> None:
    """The optimizer by its name."""
    stated = settings(name)
    if stated is None and (place := switched_on(settings, "adafactor")):  # a switch of its own before transformers 5
        stated = Stated("adafactor", place)
    if stated is None:
        return
    row = OPTIMIZERS.get(stated.text.strip().lower().removeprefix("optimizernames."))
    if row is None:
        reading.cannot_say(f"the optimizer {stated.text[:40]}", stated.place)
        return
    reading.state("optimizer.name", row.name, stated.place)
    if row.implementation:
        reading.state("optimizer.implementation", row.implementation, stated.place)


def state_attention(settings: Settings, reading: Reading) -> None:
    """The attention's implementation, of the hub's kernels as well."""
    stated = settings("attn_implementation")
    if stated is not None:
        word = stated.text.rpartition("/")[2].split("@")[0].split(":")[0].replace("vllm-", "").replace("flash-attn2", "flash_attn_2")
        word = word.replace("flash-attn3", "flash_attn_3")
        try:
            value = one_of(ATTENTION)(Stated(word, stated.place))
        except ValueError:
            reading.cannot_say(f"the attention {stated.text[:40]}", stated.place)
            return
        if value is not None:
            reading.state("attention.implementation", value, stated.place)
    elif place := switched_on(settings, *FLASH_SWITCHES):
        reading.state("attention.implementation", "flash", place)


def _evaluation(settings: Settings, reading: Reading) -> None:
    """An evaluation inside the run: by its strategy, or behind the training with --do_eval."""
    strategy = settings("eval_strategy")
    named = strategy is not None and strategy.text.lower().rpartition(".")[2] not in ("no", "false", "none", "")
    place = (
        strategy.place if strategy is not None and named else switched_on(settings, "do_eval", "eval_on_start", "evaluate_during_training")
    )
    if place is None:
        return
    apply([Row("per_device_eval_batch_size", "evaluate.micro_batch_size", positive)], settings, reading)
    reading.default("evaluate.micro_batch_size", 8, EVALUATION)


KERNELS = {
    "gemma": ("geglu", "rms_norm", "rope"),
    "gemma3": ("geglu",),
    "gemma-3": ("geglu",),
    "phi-3": ("rms_norm", "swiglu"),
    "olmo": ("rms_norm", "swiglu"),
    "mixtral": ("rms_norm", "rope"),
}
"""Liger's kernels by a word of the model's name, the longest word first; beside the fused loss, which every model gets."""

COMMON = ("rms_norm", "rope", "swiglu")


def _liger(settings: Settings, reading: Reading) -> None:
    """Liger's kernels in place of modules, and its loss that holds no logits; TRL before 0.29 had a switch for the loss alone."""
    place = switched_on(settings, "use_liger_kernel")
    if place is None:
        if (alone := switched_on(settings, "use_liger_loss")) is not None:
            reading.state("loss.implementation", "fused", alone)
        return
    chosen = settings.under("liger_kernel_config")
    model = f"{reading.get('model.preset') or reading.get('model.hf_config')}".lower()[:400]
    words = sorted((word for word in KERNELS if word in model), key=len)
    kernels = KERNELS[words[-1]] if words else COMMON
    reading.state("framework.fused_kernels", [each for each in kernels if truth(chosen(each)) is not False], place)
    if truth(chosen("fused_linear_cross_entropy")) is not False:
        reading.state("loss.implementation", "fused", place)


BEYOND = {
    "label_smoothing_factor": "label smoothing, whose loss keeps further copies of the logits",
}
SWITCHES = {
    "sharded_ddp": "fairscale's sharding",
    "auto_find_batch_size": "a batch size that is halved until it fits",
    "use_cpu": "a run without GPUs",
    "no_cuda": "a run without GPUs",
    "use_unsloth": "Unsloth's own kernels",
    "use_lisa": "layers that are trained by turns",
}
PICTURES = ("vision_tower", "mm_vision_tower", "image_folder", "image_encoder_name_or_path", "multimodal")
"""Arguments of LLaVA and its like."""


def _beyond(settings: Settings, reading: Reading) -> None:
    """What changes memory and has no field."""
    for key, what in BEYOND.items():
        stated = settings(key)
        if stated is not None and stated.text.strip("0. "):
            reading.cannot_say(what, stated.place)
    pictures = settings.first(*PICTURES)
    if pictures is not None and truth(pictures) is not False:
        reading.cannot_say("pictures among the tokens", pictures.place)
    for key, what in SWITCHES.items():
        stated = settings(key)
        if stated is not None and truth(stated) is not False and stated.text.strip():
            reading.cannot_say(what, stated.place)
