"""What Axolotl's keys mean, part by part; `axolotl.py` names the sources."""

from __future__ import annotations

from peakgate.readers.convert import flag, number, positive
from peakgate.readers.finetuners.attention import attention
from peakgate.readers.finetuners.fsdp import by_accelerates_names, state_fsdp
from peakgate.readers.finetuners.launched import Part
from peakgate.readers.finetuners.liger import FUSED_KERNELS, LOSS, gate
from peakgate.readers.finetuners.models import state_model
from peakgate.readers.finetuners.optimizers import state_optimizer
from peakgate.readers.finetuners.outside import state_outside
from peakgate.readers.finetuners.targets import state_targets
from peakgate.readers.finetuners.values import amount, count, not_counted, numbers_only, off, on, say, say_or_default, words
from peakgate.readers.finetuners.zero import state_zero, zero_settings
from peakgate.readers.finetuners.zero_files import AXOLOTL as ZERO_FILES
from peakgate.readers.launch import Launch
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row, Scalar, apply
from peakgate.readers.settings import Settings

OLDER_CARDS = ("v100", "t4", "rtx-20", "p100")
"""Cards without bfloat16, for which `bf16: auto` means fp16."""

BATCH = (
    Row("micro_batch_size", "batch.micro_batch_size", positive),
    Row("gradient_accumulation_steps", "batch.gradient_accumulation_steps", positive),
    Row("sequence_len", "batch.sequence_length", positive),
)
ATTENTION_FLAGS = {
    "flash_attention": "flash",
    "xformers_attention": "flash",
    "flex_attention": "flash",
    "sage_attention": "flash",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
"""utils/schemas/enums.py: LEGACY_ATTN_FLAG_TO_IMPL."""

DEGREES = (
    Row("tensor_parallel_size", "parallelism.tensor", positive),
    Row("expert_parallel_size", "parallelism.expert", positive),
    Row("dp_shard_size", "parallelism.shard_degree", positive),
)
LORA = (
    Row("lora_r", "lora.rank", positive),
    Row("lora_dropout", "lora.dropout", number),
    Row("peft_use_dora", "lora.method", lambda stated: "dora" if flag(stated) else None),
)
NOT_COUNTED = (
    *("unfrozen_parameters", "lora_modules_to_save", "lora_target_parameters", "peft_layers_to_transform", "peft_trainable_token_indices"),
    *("relora", "relora_steps", "peft.loftq_config.loftq_bits", "peft_layer_replication", "gptq", "quantize_moe_experts"),
    *("qat", "fp8", "lisa_n_layers", "lisa_step_interval", "layer_offloading", "tiled_mlp", "use_kernels"),
    *(
        "selective_checkpointing",
        "trainer_cls",
        "optim_target_modules",
        "kd_trainer",
        "llama4_linearized_experts",
        "flash_attn_cross_entropy",
    ),
    *("unsloth_cross_entropy_loss", "unsloth_lora_mlp", "unsloth_lora_qkv", "unsloth_lora_o", "unsloth_rms_norm", "unsloth_rope"),
    *("process_reward_model", "use_onebitllms", "freeze_mm_modules"),
)
LORA_KERNELS = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")
METHODS = {"dpo": "dpo", "ipo": "dpo", "kto": "kto", "orpo": "orpo", "grpo": "grpo", "gdpo": "grpo"}
"""`rl` -> method.name: ipo is another loss of the same trainer, gdpo another advantage."""

HARMLESS_PLUGINS = ("lm_eval", "swanlab", "art")


def model(settings: Settings, launch: Launch, reading: Reading) -> None:
    """The base model."""
    state_model(settings("base_model"), launch, reading)


def batch(settings: Settings, _: Launch, reading: Reading) -> None:
    """Sizes; packed samples are padded to the length (schemas/validation.py: check_sample_packing_w_pad), others to the longest."""
    apply(BATCH, settings, reading)
    reading.default("batch.micro_batch_size", 1, "Axolotl (schemas/training.py: micro_batch_size)")
    reading.default("batch.sequence_length", 512, "Axolotl (schemas/config.py: sequence_len)")
    total, micro = count(settings("batch_size")), count(settings("micro_batch_size"))
    if (stated := settings("batch_size")) and micro and settings("gradient_accumulation_steps") is None:
        say(reading, "batch.gradient_accumulation_steps", max(total // micro, 1), stated)
    packing, padding = settings("sample_packing"), settings("pad_to_sequence_len")
    concatenates = settings.has("pretraining_dataset") and not off(settings("pretraining_sample_concatenation"))
    packed = on(packing) or concatenates
    exact = (packed and not off(padding)) or on(padding)
    for path, value in (("batch.packed", packed), ("batch.sequence_length_is", "exact" if exact else "cap")):
        source = padding if path.endswith("_is") and padding is not None else packing
        if source is not None:
            say(reading, path, value, source)
        else:
            reading.default(path, value, "Axolotl (schemas/config.py: sample_packing)")


def half_of(settings: Settings, launch: Launch) -> str:
    """bf16, fp16 or nothing; `auto` and silence ask the card (utils/config/__init__.py: resolve_dtype)."""
    bf16, fp16 = settings("bf16"), settings("fp16")
    if on(settings("bfloat16")) or on(bf16) or (bf16 is not None and bf16.text.lower() == "full"):
        return "bf16"
    if on(fp16) or on(settings("float16")):
        return "fp16"
    if bf16 is None or bf16.text.lower() == "auto":
        card = str(launch.around.get("gpu.type") or "")
        return "fp16" if card.startswith(OLDER_CARDS) else "bf16"
    return ""


def sharding(settings: Settings, launch: Launch, reading: Reading) -> None:
    """DeepSpeed or FSDP, and the number formats, which depend on it."""
    half = half_of(settings, launch)
    zero = settings.under("deepspeed") if settings.has("deepspeed.zero_optimization") else None
    if zero is None and (path := settings("deepspeed")) and not off(path):
        zero = zero_settings(path, launch, reading, ZERO_FILES)
    config = by_accelerates_names(settings.under("fsdp_config"))
    if (version := settings("fsdp_version")) and config.leaves:
        config.override("fsdp_version", version)
    strategy = settings("fsdp") if words(settings("fsdp")) else None
    if zero is not None:
        state_zero(zero, reading, half=half, adapters=settings("adapter") is not None)
    elif strategy is not None or config.leaves:
        state_fsdp(strategy, config, reading)
    else:
        state_outside(launch, reading, half=half, adapters=settings("adapter") is not None)
    _precision(settings, reading, half)
    apply(DEGREES, settings, reading)
    _degrees(settings, reading)


def _precision(settings: Settings, reading: Reading, half: str) -> None:
    """Weights are loaded in 16 bits; FSDP 1 makes what is trained float32 (accelerate accelerator.py), version 2 as Axolotl patches it
    does not (monkeypatch/accelerate/fsdp2.py); adapters stay float32, but for DeepSpeed, which casts the whole module."""
    source = settings.first(*(("bf16", "bfloat16") if half == "bf16" else ("fp16", "float16") if half == "fp16" else ("bf16", "fp16")))
    lora, dtype = settings("adapter") is not None, {"bf16": "bfloat16", "fp16": "float16"}.get(half, "")
    if "precision.recipe" in reading.fields:
        return  # DeepSpeed's
    quantised = on(settings("load_in_4bit")) or on(settings("load_in_8bit"))
    upcast = reading.get("parallelism.sharding") in ("fsdp", "hsdp") and reading.get("framework.fsdp.version") != 2 and not quantised
    recipe = {"bf16": "fsdp-bf16" if upcast else "bf16", "fp16": "amp-fp16", "": "fp32"}[half]
    say_or_default(reading, "precision.recipe", recipe, source, "Axolotl (schemas/config.py: bf16: auto)")
    if lora and dtype and recipe != "bf16" and not quantised:
        say_or_default(reading, "lora.base_dtype", dtype, source, "Axolotl (utils/config/__init__.py: resolve_dtype)")


def _degrees(settings: Settings, reading: Reading) -> None:
    context = settings.first("context_parallel_size", "sequence_parallel_degree")
    if context is not None and count(context) > 1:
        say(reading, "parallelism.context", count(context), context)
        kernel = settings("ring_attn_func")
        gathers = kernel.text == "varlen_llama3" if kernel is not None else on(settings("sample_packing"))
        say(reading, "parallelism.context_type", "all-gather" if gathers else "ring", kernel or context)
    copies = settings("dp_replicate_size")
    if copies is not None and count(copies) > 1 and reading.get("parallelism.sharding") == "fsdp":
        reading.fields.pop("parallelism.sharding")
        say(reading, "parallelism.sharding", "hsdp", copies)
    if shards := count(settings("dp_shard_size")):
        size = shards * (count(copies) or 1) * (count(context) or 1) * (count(settings("tensor_parallel_size")) or 1)
        reading.default("parallelism.world_size", size, "Axolotl (utils/distributed.py: degrees multiply to the world)")


def optimizer(settings: Settings, _: Launch, reading: Reading) -> None:
    """The optimizer, unless DeepSpeed's file names one."""
    if "optimizer.name" in reading.fields:
        return
    if (stated := settings("optimizer")) is not None:
        state_optimizer(stated, reading)
    else:
        reading.default("optimizer.implementation", "fused", "Axolotl (schemas/training.py: optimizer: adamw_torch_fused)")


def kernels(settings: Settings, _: Launch, reading: Reading) -> None:
    """Attention, compile, and the kernels of plugins that are switched on."""
    named = settings("attn_implementation")
    if named is not None:
        apply((Row("attn_implementation", "attention.implementation", attention),), settings, reading)
    else:
        chosen = next((key for key in ATTENTION_FLAGS if on(settings(key))), "")
        if chosen and (stated := settings(chosen)) is not None:
            say(reading, "attention.implementation", ATTENTION_FLAGS[chosen], stated)
    if (compiled := settings("torch_compile")) is not None and on(compiled):
        say(reading, "framework.compile", True, compiled)
    plugins = words(settings("plugins"))
    _liger(settings, reading, listed=any("liger" in each.lower() for each in plugins))
    _loss(settings, reading, plugins)
    for each in plugins:
        if not any(known in each.lower() for known in ("liger", "cut_cross_entropy", *HARMLESS_PLUGINS)) and (
            stated := settings("plugins")
        ):
            reading.cannot_say(f"plugin {each[:80]}", stated.place)


def _liger(settings: Settings, reading: Reading, *, listed: bool) -> None:
    if not listed:
        return
    names = {
        "liger_rms_norm": "rms_norm",
        "liger_rope": "rope",
        "liger_glu_activation": gate(reading),
        "liger_swiglu": gate(reading),
        "liger_cross_entropy": "cross_entropy",
    }
    chosen: list[tuple[str, Stated]] = [(names[key], stated) for key in names if (stated := settings(key)) is not None and on(stated)]
    if chosen:
        found: list[Scalar] = sorted({name for name, _ in chosen})
        say(reading, FUSED_KERNELS, found, chosen[0][1])
    if (stated := settings("liger_fused_linear_cross_entropy")) is not None and on(stated):
        say(reading, LOSS, "fused", stated)


def _loss(settings: Settings, reading: Reading, plugins: list[str]) -> None:
    """Cut cross entropy is on as soon as its plugin is listed (integrations/cut_cross_entropy/args.py)."""
    source = settings("cut_cross_entropy") or settings("plugins")
    if any("cut_cross_entropy" in each.lower() for each in plugins) and not off(settings("cut_cross_entropy")) and source is not None:
        say(reading, LOSS, "fused", source)
    if (chunks := settings("chunked_cross_entropy")) is not None and on(chunks):
        say(reading, LOSS, "chunked", chunks)


def checkpointing(settings: Settings, _: Launch, reading: Reading) -> None:
    """Checkpointing is reentrant unless something says otherwise (utils/config/__init__.py: normalize_config)."""
    stated, moved = settings("gradient_checkpointing"), settings("activation_offloading")
    word = stated.text.strip().lower() if stated is not None else ""
    if stated is None or not (on(stated) or word.startswith("offload")):
        return
    say(reading, "checkpointing.mode", "full", stated)
    if (kind := settings("gradient_checkpointing_kwargs.use_reentrant")) is not None:
        say(reading, "checkpointing.reentrant", on(kind), kind)
    else:
        offloads = word.startswith("offload") or (moved is not None and not off(moved))
        chosen = settings("rl") is not None or settings.has("unfrozen_parameters") or offloads
        reading.default("checkpointing.reentrant", not chosen, "Axolotl (utils/config/__init__.py: normalize_config)")
    if word.startswith("offload"):
        say(reading, "offload.activations", "nvme" if word == "offload_disk" else "cpu", stated)
    elif moved is not None and not off(moved):
        say(reading, "offload.activations", "nvme" if moved.text.lower() == "disk" else "cpu", moved)


def lora(settings: Settings, _: Launch, reading: Reading) -> None:
    """Adapters; a 4-bit base has its constants quantised too unless `bnb_config_kwargs` says otherwise (loaders/model.py)."""
    adapter = settings("adapter")
    if adapter is None:
        return
    if adapter.text.lower() not in ("lora", "qlora"):
        reading.cannot_say(f"adapter {adapter.text[:60]}", adapter.place)
        return
    apply(LORA, settings, reading)
    reading.take("lora.method", Stated(reading.get("lora.method") or "lora", adapter.place))
    _targets(settings, reading)
    if (four := settings("load_in_4bit")) is not None and on(four):
        kind = settings("bnb_config_kwargs.bnb_4bit_quant_type")
        say(reading, "lora.base_dtype", "int4" if kind is not None and kind.text == "fp4" else "nf4", kind or four)
        if (double := settings("bnb_config_kwargs.bnb_4bit_use_double_quant")) is not None:
            say(reading, "lora.double_quant", on(double), double)
        else:
            reading.default("lora.double_quant", True, "Axolotl (loaders/model.py: bnb_4bit_use_double_quant)")
    elif (eight := settings("load_in_8bit")) is not None and on(eight):
        say(reading, "lora.base_dtype", "int8", eight)
    if "checkpointing.mode" not in reading.fields:
        not_counted(LORA_KERNELS, settings, reading)


def _targets(settings: Settings, reading: Reading) -> None:
    named, every = settings("lora_target_modules"), settings("lora_target_linear")
    if every is not None and on(every):
        say(reading, "lora.targets", ["all-linear"], every)
    elif named is not None:
        state_targets(named, reading)


def method(settings: Settings, _: Launch, reading: Reading) -> None:
    """Pretraining, preference optimisation, reward models; a preference run with adapters takes the base as its reference."""
    if (stated := settings("rl")) is not None and not off(stated):
        word = stated.text.strip().lower()
        if word not in METHODS:
            reading.cannot_say(f"rl: {word[:60]}", stated.place)
            return
        say(reading, "method.name", METHODS[word], stated)
        _reference(METHODS[word], stated, settings, reading)
        if METHODS[word] == "grpo":
            _generation(settings, reading)
    elif (reward := settings("reward_model")) is not None and on(reward):
        say(reading, "method.name", "reward", reward)
    elif settings.has("pretraining_dataset"):
        first = next(each for path, each in settings.leaves.items() if path.startswith("pretraining_dataset"))
        say(reading, "method.name", "pretrain", first)


def _reference(name: str, stated: Stated, settings: Settings, reading: Reading) -> None:
    beta = settings("trl.beta") or settings("rl_beta")
    kept = name in ("dpo", "kto") or (name == "grpo" and amount(beta) > 0)
    precomputed = settings("precompute_ref_log_probs")
    if precomputed is not None and on(precomputed):
        say(reading, "method.reference", "none", precomputed)
    elif kept and settings("adapter") is not None and not on(settings("rl_adapter_ref_model")):
        say(reading, "method.reference", "adapter", settings("adapter") or stated)
    elif kept:
        say(reading, "method.reference", "full", stated if name != "grpo" else beta or stated)


def _generation(settings: Settings, reading: Reading) -> None:
    """vLLM's part (core/trainers/grpo/__init__.py; TRL grpo_config.py: mode server unless it says colocate before 1.0)."""
    apply((Row("trl.max_completion_length", "batch.target_length", positive),), settings, reading)
    used, mode = settings("trl.use_vllm"), settings("trl.vllm_mode")
    if not on(used) or used is None:
        return
    colocated = mode is not None and mode.text.lower() == "colocate"
    say(reading, "method.generation.mode", "colocated" if colocated else "separate", mode or used)
    if not colocated:
        return
    share = settings("vllm.gpu_memory_utilization")
    if share is not None and amount(share):
        say(reading, "method.generation.memory_fraction", amount(share), share)
    else:
        reading.default("method.generation.memory_fraction", 0.9, "Axolotl (schemas/vllm.py: gpu_memory_utilization)")
    if (sleep := settings("trl.vllm_enable_sleep_mode")) is not None:
        say(reading, "method.generation.sleep", on(sleep), sleep)


def evaluation(settings: Settings, _: Launch, reading: Reading) -> None:
    """A part of the data or a second set, looked at every so often (core/builders/base.py: _configure_save_and_eval_strategy)."""
    data = settings("val_set_size")
    happens = amount(data) > 0 or settings.has("test_datasets")
    strategy = settings.first("eval_strategy", "evaluation_strategy")
    often = (
        amount(settings("eval_steps")) or amount(settings("evals_per_epoch")) or (strategy is not None and strategy.text.lower() != "no")
    )
    if not happens or not often:
        return
    stated = settings.first("eval_batch_size", "micro_batch_size") or data or strategy
    if stated is not None:
        size = count(settings("eval_batch_size")) or count(settings("micro_batch_size")) or 1
        say(reading, "evaluate.micro_batch_size", size, stated)


def rest(settings: Settings, _: Launch, reading: Reading) -> None:
    """What no field says; a quantised model file that is made whole on loading is none of it."""
    not_counted(NOT_COUNTED, settings, reading)
    numbers_only(("batch_size", "eval_batch_size", "context_parallel_size", "sequence_parallel_degree"), settings, reading)
    if not on(settings("model_quantization_config_kwargs.dequantize")):
        not_counted(("model_quantization_config",), settings, reading)


PARTS: tuple[Part, ...] = (model, batch, sharding, optimizer, kernels, checkpointing, lora, method, evaluation, rest)
