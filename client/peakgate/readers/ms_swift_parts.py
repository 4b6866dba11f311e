"""What ms-swift's arguments mean, part by part; `ms_swift.py` names the sources."""

from __future__ import annotations

from peakgate.readers.convert import flag, number, one_of, positive
from peakgate.readers.files import FileError
from peakgate.readers.finetuners.attention import attention
from peakgate.readers.finetuners.fsdp import by_accelerates_names, state_fsdp
from peakgate.readers.finetuners.launched import Part, world_of
from peakgate.readers.finetuners.liger import state_liger
from peakgate.readers.finetuners.models import state_model
from peakgate.readers.finetuners.optimizers import state_optimizer
from peakgate.readers.finetuners.outside import state_outside
from peakgate.readers.finetuners.targets import state_targets
from peakgate.readers.finetuners.values import amount, count, not_counted, numbers_only, off, on, say, say_or_default, words
from peakgate.readers.finetuners.zero import state_zero, zero_settings
from peakgate.readers.finetuners.zero_files import MS_SWIFT
from peakgate.readers.launch import Launch
from peakgate.readers.place import YAML, Place, Stated
from peakgate.readers.reading import Reading, Row, Scalar, apply
from peakgate.readers.settings import Settings, read_settings

OWN = "ms-swift"

TYPES = {
    "tuner_type": ("train_type", "sft_type"),
    "model": ("model_id_or_path",),
    "per_device_train_batch_size": ("batch_size",),
    "use_liger_kernel": ("use_liger",),
    "eval_strategy": ("evaluation_strategy",),
    "torch_dtype": ("dtype",),
    "quant_bits": ("quantization_bit",),
    "target_modules": ("lora_target_modules",),
}
"""Today's name -> earlier ones."""

BATCH = (
    Row("per_device_train_batch_size", "batch.micro_batch_size", positive),
    Row("gradient_accumulation_steps", "batch.gradient_accumulation_steps", positive),
    Row("max_length", "batch.sequence_length", positive),
    Row("attn_impl", "attention.implementation", attention),
    Row("torch_compile", "framework.compile", lambda stated: flag(stated) or None),
    Row("ddp_bucket_cap_mb", "framework.ddp.bucket_cap_mb", positive),
)
LORA = (Row("lora_rank", "lora.rank", positive), Row("lora_dropout", "lora.dropout", number))
DTYPES = one_of(
    {"bfloat16": "bfloat16", "bf16": "bfloat16", "float16": "float16", "fp16": "float16", "float32": "float32", "fp32": "float32"}
)
METHODS = {"dpo": "dpo", "kto": "kto", "orpo": "orpo", "rm": "reward", "ppo": "ppo", "grpo": "grpo", "gkd": "distill"}
NOT_COUNTED = (
    *("use_galore", "use_lisa", "lisa_activated_layers", "freeze_parameters", "freeze_parameters_ratio", "freeze_parameters_regex"),
    *("trainable_parameters", "trainable_parameters_regex", "modules_to_save", "target_parameters", "target_regex", "optimizer"),
    *("zero_hpz_partition_size", "use_unsloth", "vit_lr", "aligner_lr", "rope_scaling"),
)


def model(settings: Settings, launch: Launch, reading: Reading) -> None:
    """The model's id or folder."""
    state_model(settings("model"), launch, reading)


def batch(settings: Settings, launch: Launch, reading: Reading) -> None:
    """Sizes; accumulation fills a global batch of 16 when it is not stated (trainers/arguments.py: __post_init__)."""
    apply(BATCH, settings, reading)
    reading.default("batch.micro_batch_size", 1, f"{OWN} (trainers/arguments.py: per_device_train_batch_size)")
    world, micro = world_of(launch, reading), count(settings("per_device_train_batch_size")) or 1
    if world and settings("gradient_accumulation_steps") is None:
        steps = max(1, -(-16 // (micro * world)))
        reading.default("batch.gradient_accumulation_steps", steps, f"{OWN} (trainers/arguments.py: gradient_accumulation_steps)")
    packing, free = settings("packing"), settings("padding_free")
    source = packing if on(packing) else free if on(free) else packing or free
    say_or_default(reading, "batch.packed", on(packing) or on(free), source, f"{OWN} (base_args.py: packing)")
    say_or_default(reading, "batch.sequence_length_is", "exact" if on(packing) else "cap", source, f"{OWN} (template_args.py: max_length)")


def tuning(settings: Settings, default: str = "lora") -> str:
    """lora, full or another tuner; lora when nothing is said."""
    stated = settings("tuner_type")
    return stated.text.strip().lower() if stated is not None else default


def dtype_of(settings: Settings, reading: Reading) -> str:
    """The format in which weights are loaded: the model file's own when nothing is said."""
    stated = settings("torch_dtype") or (settings("bf16") if on(settings("bf16")) else settings("fp16") if on(settings("fp16")) else None)
    if stated is None:
        config = reading.get("model.hf_config")
        own = config.get("torch_dtype") or config.get("dtype") if isinstance(config, dict) else None
        return str(own) if own in ("float16", "float32") else "bfloat16"
    if stated is not settings("torch_dtype"):
        return "bfloat16" if on(settings("bf16")) else "float16"
    try:
        return str(DTYPES(stated))
    except ValueError:
        return "bfloat16"


RECIPES = {"bfloat16": "bf16", "float16": "amp-fp16", "float32": "fp32"}


def sharding(settings: Settings, launch: Launch, reading: Reading) -> None:
    """DeepSpeed's file by path or by one of six names, FSDP 2's by path or name, and the number formats (model_args.py: bf16, fp16)."""
    dtype = dtype_of(settings, reading)
    source, whose = settings("torch_dtype") or settings("bf16"), f"{OWN} (model_args.py: torch_dtype is the model's own)"
    path, half = settings("deepspeed"), {"bfloat16": "bf16", "float16": "fp16", "float32": ""}[dtype]
    zero = zero_settings(path, launch, reading, MS_SWIFT) if path is not None and path.value is not True else None
    if zero is not None:
        state_zero(zero, reading, half=half, adapters=tuning(settings) != "full")
    elif settings("fsdp") is not None:
        _fsdp(settings, launch, reading)
    else:
        state_outside(launch, reading, half=half, adapters=tuning(settings) != "full")
    if "precision.recipe" not in reading.fields:
        fsdp = reading.get("parallelism.sharding") in ("fsdp", "hsdp")
        quantised = settings("quant_bits") is not None
        recipe = "fsdp-bf16" if fsdp and dtype == "bfloat16" and not quantised else RECIPES[dtype]
        say_or_default(reading, "precision.recipe", recipe, source, whose)
        if recipe not in ("bf16", "fp32") and tuning(settings) != "full" and not quantised:
            say_or_default(reading, "lora.base_dtype", dtype, source, whose)
    if (tensor := settings("deepspeed_autotp_size")) is not None and count(tensor) > 1:
        say(reading, "parallelism.tensor", count(tensor), tensor)
    if (context := settings("sequence_parallel_size")) is not None and count(context) > 1:
        say(reading, "parallelism.context", count(context), context)
        say(reading, "parallelism.context_type", "ulysses", context)


FSDP2 = {"fsdp_version": 2, "reshard_after_forward": True, "state_dict_type": "SHARDED_STATE_DICT", "activation_checkpointing": True}
"""swift/config/fsdp2.json."""


def _fsdp(settings: Settings, launch: Launch, reading: Reading) -> None:
    stated = settings("fsdp")
    if stated is None:
        return
    if stated.text == "fsdp2":
        config = Settings({key: Stated(value, Place(kind=YAML, key=key, file="fsdp2")) for key, value in FSDP2.items()})
        state_fsdp(stated, by_accelerates_names(config), reading)
        return
    try:
        file = read_settings(launch.files.text(stated.text), stated.text)
        state_fsdp(file("fsdp") or stated, by_accelerates_names(file.under("fsdp_config")), reading)
    except FileError:
        state_fsdp(stated, Settings(), reading)
    reading.default("framework.fsdp.version", 2, f"{OWN} (sft_args.py: _init_fsdp)")


def lora(settings: Settings, _: Launch, reading: Reading) -> None:
    """Adapters on all linear layers unless they are named."""
    kind = settings("tuner_type")
    if tuning(settings) == "full":
        _frozen(settings, reading)
        return
    if tuning(settings) not in ("lora", "qlora", "dora"):
        if kind is not None:
            reading.cannot_say(f"tuner {kind.text[:40]}", kind.place)
        return
    dora = settings("use_dora")
    say_or_default(reading, "lora.method", "dora" if on(dora) else "lora", dora if on(dora) else kind, f"{OWN} (base_args.py: tuner_type)")
    apply(LORA, settings, reading)
    reading.default("lora.dropout", 0.05, f"{OWN} (tuner_args.py: lora_dropout)")
    named = settings("target_modules")
    if named is None or not state_targets(named, reading):
        reading.default("lora.targets", ["all-linear"], f"{OWN} (tuner_args.py: target_modules)")
    if (own := settings("lora_dtype")) is not None:
        apply((Row("lora_dtype", "lora.adapter_dtype", lambda _: DTYPES(own)),), settings, reading)
    quantised_base(settings, reading)


def quantised_base(settings: Settings, reading: Reading) -> None:
    """A base that is quantised on loading (quant_args.py: double quantisation of 4 bits is on)."""
    bits, way = settings("quant_bits"), settings("quant_method")
    if bits is None or off(bits):
        return
    if (way is not None and way.text.lower() != "bnb") or bits.text not in ("4", "8"):
        reading.cannot_say(f"quant_bits {bits.text[:20]} of {way.text[:20] if way is not None else 'bnb'}", bits.place)
        return
    kind, double = settings("bnb_4bit_quant_type"), settings("bnb_4bit_use_double_quant")
    four = "int4" if kind is not None and kind.text == "fp4" else "nf4"
    say(reading, "lora.base_dtype", four if bits.text == "4" else "int8", bits)
    if bits.text == "4":
        value = on(double) if double is not None else True
        say_or_default(reading, "lora.double_quant", value, double, f"{OWN} (quant_args.py: bnb_4bit_use_double_quant)")


def _frozen(settings: Settings, reading: Reading) -> None:
    """What a launch says of the parts of a model with pictures; the tower is frozen when it says nothing, which matters there alone."""
    chosen = {"freeze_vit": "vision_tower", "freeze_llm": "language_model"}
    named = [(chosen[key], stated) for key in chosen if (stated := settings(key)) is not None and on(stated)]
    if named:
        frozen: list[Scalar] = [name for name, _ in named]
        say(reading, "frozen", frozen, named[0][1])


def optimizer(settings: Settings, _: Launch, reading: Reading) -> None:
    """The trainer's optimizer, unless DeepSpeed's file names one."""
    if "optimizer.name" not in reading.fields and (stated := settings("optim")) is not None:
        state_optimizer(stated, reading)


def checkpointing(settings: Settings, _: Launch, reading: Reading) -> None:
    """On unless it is switched off (trainers/arguments.py: gradient_checkpointing)."""
    stated = settings("gradient_checkpointing")
    if "checkpointing.mode" in reading.fields:
        return  # FSDP's own
    say_or_default(reading, "checkpointing.mode", "none" if off(stated) else "full", stated, f"{OWN} (trainers/arguments.py)")
    kwargs = settings("gradient_checkpointing_kwargs")
    if kwargs is not None and "use_reentrant" in kwargs.text:
        try:
            kind = read_settings(kwargs.text, "")("use_reentrant")
        except FileError:
            return
        if kind is not None:
            say(reading, "checkpointing.reentrant", on(kind), kwargs)


def kernels(settings: Settings, _: Launch, reading: Reading) -> None:
    """Liger's kernels."""
    stated = settings("use_liger_kernel")
    if stated is not None and on(stated):
        state_liger(stated, reading)


def method(settings: Settings, launch: Launch, reading: Reading, default: str = "lora") -> None:
    """The kind of preference optimisation; the base is the reference of adapters. `default`: the tuner when nothing is said."""
    stated = settings("rlhf_type")
    if stated is None:
        return
    word = stated.text.lower()
    if word not in METHODS:
        reading.cannot_say(f"rlhf_type {word[:40]}", stated.place)
        return
    name = METHODS[word]
    say(reading, "method.name", name, stated)
    beta = settings("beta")
    keeps = name in ("dpo", "kto", "ppo") or (name == "grpo" and (beta is None or amount(beta) > 0))
    if keeps:
        adapters = tuning(settings, default) != "full" and settings("ref_model") is None
        say(reading, "method.reference", "adapter" if adapters else "full", settings("ref_model") or stated)
    if name == "distill":
        state_model(settings("teacher_model"), launch, reading, "method.teacher")
    if name in ("ppo",):
        state_model(settings("reward_model"), launch, reading, "method.reward")
    if name in ("grpo", "distill", "ppo"):
        answers(settings, reading)
    if name in ("grpo", "distill"):
        generation(settings, reading)


def answers(settings: Settings, reading: Reading) -> None:
    """`max_length` is the prompt's alone where the policy answers (template_args.py); the answer stands behind it."""
    apply((Row("max_completion_length", "batch.target_length", positive),), settings, reading)
    reading.default("batch.target_length", 512, f"{OWN} (rlhf_args.py: max_completion_length)")
    prompt, answer = settings("max_length"), reading.get("batch.target_length")
    if prompt is not None and count(prompt) and isinstance(answer, int):
        reading.fields.pop("batch.sequence_length", None)
        say(reading, "batch.sequence_length", count(prompt) + answer, prompt)


def generation(settings: Settings, reading: Reading) -> None:
    """vLLM's part of the cards (rlhf_args.py and TRL's GRPOConfig)."""
    used, mode = settings("use_vllm"), settings("vllm_mode")
    if used is None or not on(used):
        return
    shared = next(
        (stated for stated in settings.under("colocate_groups").leaves.values() if {"train", "rollout"} <= set(words(stated))), None
    )
    colocated = shared is not None or (mode is not None and mode.text.lower() == "colocate")
    say(reading, "method.generation.mode", "colocated" if colocated else "separate", shared or mode or used)
    if not colocated:
        return
    share = settings.first("vllm_gpu_memory_utilization", "rollout.vllm_gpu_memory_utilization")
    say_or_default(reading, "method.generation.memory_fraction", amount(share) or 0.9, share, f"{OWN} (vllm_gpu_memory_utilization)")
    if (level := settings("sleep_level")) is not None:
        say(reading, "method.generation.sleep", count(level) > 0, level)


def evaluation(settings: Settings, _: Launch, reading: Reading) -> None:
    """A set of its own or a part of the data, unless the strategy says no (sft_args.py: _init_eval_strategy)."""
    data = settings.first("val_dataset", "cached_val_dataset") or settings("split_dataset_ratio")
    strategy = settings("eval_strategy")
    if data is None or (data is settings("split_dataset_ratio") and not amount(data)):
        return
    if strategy is not None and strategy.text.lower() == "no":
        return
    size = settings("per_device_eval_batch_size")
    say(reading, "evaluate.micro_batch_size", count(size) or 1, size or data)


def other_task(settings: Settings, reading: Reading) -> None:
    """Heads of classes, embeddings and rankers in place of a language model's (base_args.py: task_type)."""
    stated = settings("task_type")
    if stated is not None and stated.text.strip().lower() not in ("causal_lm", "generative_reranker", "none", "null", ""):
        reading.cannot_say(f"task_type {stated.text[:40]}", stated.place)


def rest(settings: Settings, _: Launch, reading: Reading) -> None:
    """What no field says."""
    not_counted(NOT_COUNTED, settings, reading)
    other_task(settings, reading)
    numbers_only(("deepspeed_autotp_size", "sequence_parallel_size", "per_device_eval_batch_size"), settings, reading)


PARTS: tuple[Part, ...] = (model, batch, sharding, lora, optimizer, checkpointing, kernels, method, evaluation, rest)
