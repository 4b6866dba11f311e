"""What LLaMA-Factory's arguments mean, part by part; `llamafactory.py` names the sources.

More of them: model/adapter.py (what is trained is float32 unless pure_bf16), model/loader.py (weights in the checkpoint's own format),
model/model_utils/{checkpointing,attention,liger_kernel,quantization}.py, train/{sft,dpo,kto,rm,ppo}/workflow.py, train/trainer_utils.py.
"""

from __future__ import annotations

from peakgate.readers.convert import flag, number, one_of, positive
from peakgate.readers.finetuners.attention import attention
from peakgate.readers.finetuners.fsdp import by_accelerates_names, state_fsdp
from peakgate.readers.finetuners.launched import Part
from peakgate.readers.finetuners.liger import state_liger
from peakgate.readers.finetuners.models import state_model
from peakgate.readers.finetuners.optimizers import state_optimizer
from peakgate.readers.finetuners.outside import half_outside, state_outside
from peakgate.readers.finetuners.targets import state_targets
from peakgate.readers.finetuners.values import amount, count, not_counted, on, say, say_or_default, words
from peakgate.readers.finetuners.zero import state_zero, zero_settings
from peakgate.readers.finetuners.zero_files import LLAMA_FACTORY
from peakgate.readers.launch import Launch
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Row, Scalar, apply
from peakgate.readers.settings import Settings

OWN = "LLaMA-Factory"

BATCH = (
    Row("per_device_train_batch_size", "batch.micro_batch_size", positive),
    Row("gradient_accumulation_steps", "batch.gradient_accumulation_steps", positive),
    Row("cutoff_len", "batch.sequence_length", positive),
    Row("ddp_bucket_cap_mb", "framework.ddp.bucket_cap_mb", positive),
    Row("flash_attn", "attention.implementation", attention),
    Row("torch_compile", "framework.compile", lambda stated: flag(stated) or None),
)
STAGES = one_of({"pt": "pretrain", "sft": "sft", "rm": "reward", "ppo": "ppo", "dpo": "dpo", "kto": "kto"})
LORA = (Row("lora_rank", "lora.rank", positive), Row("lora_dropout", "lora.dropout", number))
QUANTISED = {"8": "int8", "4": "nf4"}

NOT_COUNTED = (
    *(
        "use_galore",
        "use_apollo",
        "use_badam",
        "use_adam_mini",
        "use_muon",
        "use_llama_pro",
        "use_mca",
        "use_megatron_bridge",
        "use_unsloth",
    ),
    *("use_unsloth_gc", "mixture_of_depths", "shift_attn", "additional_target", "use_kt", "use_hyper_parallel", "fp8", "pissa_init"),
    *("use_asft_loss", "upcast_lmhead_output", "use_v1_kernels", "train_from_scratch", "galore_layerwise", "optim_target_modules"),
)


def model(settings: Settings, launch: Launch, reading: Reading) -> None:
    """The model's id or folder."""
    state_model(settings("model_name_or_path"), launch, reading)


def batch(settings: Settings, _: Launch, reading: Reading) -> None:
    """Sizes; stage pt packs by itself (hparams/parser.py), neat packing is packing with separate attention."""
    apply(BATCH, settings, reading)
    reading.default("batch.micro_batch_size", 8, "transformers (training_args.py: per_device_train_batch_size)")
    reading.default("batch.sequence_length", 2048, f"{OWN} (data_args.py: cutoff_len)")
    packing = settings("packing")
    if packing is None or on(settings("neat_packing")):
        packing = settings("neat_packing") if on(settings("neat_packing")) else None
    stage = settings("stage")
    packed = on(packing) if packing is not None else stage is not None and stage.text == "pt"
    whose = f"{OWN} (parser.py: packing of stage pt alone)"
    for path, value in (("batch.packed", packed), ("batch.sequence_length_is", "exact" if packed else "cap")):
        say_or_default(reading, path, value, packing, whose)


def method(settings: Settings, launch: Launch, reading: Reading) -> None:
    """The stage; orpo and simpo are losses of stage dpo without a reference (train/trainer_utils.py: create_ref_model)."""
    apply((Row("stage", "method.name", STAGES),), settings, reading)
    reading.default("method.name", "sft", f"{OWN} (finetuning_args.py: stage)")
    loss = settings("pref_loss")
    name = reading.get("method.name")
    if name == "dpo" and loss is not None and loss.text in ("orpo", "simpo"):
        del reading.fields["method.name"]
        if loss.text == "orpo":
            say(reading, "method.name", "orpo", loss)
        else:
            reading.cannot_say("pref_loss: simpo", loss.place)
        return
    if name in ("dpo", "kto", "ppo") and (stage := settings("stage")) is not None:
        adapters = tuning(settings) in ("lora", "oft") and settings("ref_model") is None
        say(reading, "method.reference", "adapter" if adapters else "full", settings("ref_model") or stage)
    if name == "ppo" and (kind := settings("reward_model_type")) is not None and kind.text == "full":
        state_model(settings("reward_model"), launch, reading, "method.reward")


def tuning(settings: Settings) -> str:
    """lora, full, freeze or oft; lora when nothing is said (finetuning_args.py: finetuning_type)."""
    stated = settings("finetuning_type")
    return stated.text.strip().lower() if stated is not None else "lora"


def lora(settings: Settings, _: Launch, reading: Reading) -> None:
    """Adapters on all linear layers unless they are named; a base that is quantised on loading."""
    kind = settings("finetuning_type")
    if tuning(settings) != "lora":
        if tuning(settings) != "full" and kind is not None:
            _freeze(settings, kind, reading)
        return
    say_or_default(
        reading, "lora.method", "dora" if on(settings("use_dora")) else "lora", settings("use_dora") or kind, f"{OWN} (finetuning_type)"
    )
    apply(LORA, settings, reading)
    named = settings("lora_target")
    if named is None or not state_targets(named, reading):
        reading.default("lora.targets", ["all-linear"], f"{OWN} (finetuning_args.py: lora_target: all)")
    _quantised(settings, reading)


def _quantised(settings: Settings, reading: Reading) -> None:
    bits, way = settings("quantization_bit"), settings("quantization_method")
    if bits is None:
        return
    if (way is not None and way.text.lower() not in ("bnb", "bitsandbytes")) or bits.text not in QUANTISED:
        reading.cannot_say(f"quantization_bit {bits.text[:20]} of {way.text[:20] if way is not None else 'bnb'}", bits.place)
        return
    kind = settings("quantization_type")
    fp4 = bits.text == "4" and kind is not None and kind.text == "fp4"
    say(reading, "lora.base_dtype", "int4" if fp4 else QUANTISED[bits.text], bits)
    if bits.text == "4":
        double = settings("double_quantization")
        whose = f"{OWN} (model_args.py: double_quantization)"
        say_or_default(reading, "lora.double_quant", on(double) if double is not None else True, double, whose)


def _freeze(settings: Settings, kind: Stated, reading: Reading) -> None:
    """The last layers are trained, two when nothing is said, and nothing else (model/adapter.py: _setup_freeze_tuning)."""
    config = reading.get("model.hf_config")
    layers = config.get("num_hidden_layers") if isinstance(config, dict) else None
    trained = count(settings("freeze_trainable_layers")) or 2
    plain = not words(settings("freeze_extra_modules")) and words(settings("freeze_trainable_modules")) in ([], ["all"])
    if kind.text.lower() == "freeze" and isinstance(layers, int) and trained < layers < 1000 and plain:
        say(reading, "frozen", ["embeddings", "head", "norm", f"layers.0-{layers - trained - 1}"], kind)
    else:
        reading.cannot_say(f"finetuning_type {kind.text[:40]}", kind.place)


def sharding(settings: Settings, launch: Launch, reading: Reading) -> None:
    """DeepSpeed's file, or FSDP of the trainer's own arguments (accelerate's is around the launch), and the number formats."""
    half = "bf16" if on(settings("bf16")) or on(settings("pure_bf16")) else "fp16" if on(settings("fp16")) else half_outside(launch)
    zero = settings.under("deepspeed") if settings.has("deepspeed.zero_optimization") else None
    if zero is None and (path := settings("deepspeed")) is not None:
        zero = zero_settings(path, launch, reading, LLAMA_FACTORY)
    if zero is not None:
        state_zero(zero, reading, half=half, adapters=tuning(settings) == "lora")
    elif settings.has("fsdp") or settings.has("fsdp_config"):
        state_fsdp(settings("fsdp"), by_accelerates_names(settings.under("fsdp_config")), reading)
    else:
        state_outside(launch, reading, half=half, adapters=tuning(settings) == "lora")
    if "precision.recipe" not in reading.fields:
        _precision(settings, reading, half)


def _precision(settings: Settings, reading: Reading, half: str) -> None:
    """What is trained is made float32 and computes under autocast; adapters leave their base as it is in its file."""
    source = settings("pure_bf16") if on(settings("pure_bf16")) else settings("bf16") if half == "bf16" else settings("fp16")
    fsdp = reading.get("parallelism.sharding") in ("fsdp", "hsdp")
    quantised = settings("quantization_bit") is not None
    if tuning(settings) in ("lora", "oft") and (quantised or not fsdp):
        recipe = {"bf16": "bf16", "fp16": "amp-fp16", "": "fp32"}[half]
    elif on(settings("pure_bf16")):
        recipe = "bf16"
    else:
        recipe = {"bf16": "fsdp-bf16" if fsdp else "amp-bf16", "fp16": "amp-fp16", "": "fp32"}[half]
    say_or_default(reading, "precision.recipe", recipe, source, "transformers (training_args.py: bf16, fp16)")
    if tuning(settings) == "lora" and half and recipe != "bf16" and not quantised and source is not None:
        say(reading, "lora.base_dtype", "bfloat16" if half == "bf16" else "float16", source)


def optimizer(settings: Settings, _: Launch, reading: Reading) -> None:
    """The trainer's optimizer, unless DeepSpeed's file names one; Muon has a switch of its own."""
    if (muon := settings("use_muon")) is not None and on(muon):
        say(reading, "optimizer.name", "muon", muon)
        return
    if "optimizer.name" not in reading.fields and (stated := settings("optim")) is not None:
        state_optimizer(stated, reading)


def checkpointing(settings: Settings, _: Launch, reading: Reading) -> None:
    """On and reentrant unless it is switched off (model_utils/checkpointing.py: prepare_model_for_training), under FSDP 2 not reentrant."""
    if (stated := settings("disable_gradient_checkpointing")) is not None and on(stated):
        say(reading, "checkpointing.mode", "none", stated)
        return
    reading.default("checkpointing.mode", "full", f"{OWN} (model_args.py: disable_gradient_checkpointing)")
    second = reading.get("framework.fsdp.version") == 2
    kind = settings("use_reentrant_gc")
    if kind is not None and not second:
        say(reading, "checkpointing.reentrant", on(kind), kind)
    else:
        reading.default("checkpointing.reentrant", not second, f"{OWN} (model_args.py: use_reentrant_gc)")


def kernels(settings: Settings, _: Launch, reading: Reading) -> None:
    """Liger's kernels; only pretraining and fine-tuning take its fused loss (train/*/workflow.py: require_logits)."""
    stated = settings("enable_liger_kernel")
    if stated is not None and on(stated):
        state_liger(stated, reading, fused_loss=reading.get("method.name") in ("pretrain", "sft"))


def evaluation(settings: Settings, _: Launch, reading: Reading) -> None:
    """A part of the data or a set of its own, and a strategy."""
    strategy = settings.first("eval_strategy", "evaluation_strategy")
    has = amount(settings("val_size")) > 0 or settings("eval_dataset") is not None
    if strategy is None or strategy.text.lower() in ("no", "false") or not has:
        return
    size = settings("per_device_eval_batch_size")
    if size is not None and count(size):
        say(reading, "evaluate.micro_batch_size", count(size), size)
    else:
        reading.default("evaluate.micro_batch_size", 8, "transformers (training_args.py: per_device_eval_batch_size)")


VISION = {"freeze_vision_tower": "vision_tower", "freeze_language_model": "language_model"}
"""The projector between the two is no part that the service knows."""


def vision(settings: Settings, _: Launch, reading: Reading) -> None:
    """Parts of a model with pictures that are not trained, where the launch names them."""
    named = [(VISION[key], stated) for key in VISION if (stated := settings(key)) is not None and on(stated)]
    if named and tuning(settings) == "full":
        frozen: list[Scalar] = [name for name, _ in named]
        say(reading, "frozen", frozen, named[0][1])


def rest(settings: Settings, _: Launch, reading: Reading) -> None:
    """What no field says."""
    not_counted(NOT_COUNTED, settings, reading)
    if on(settings("upcast_layernorm")) and (stated := settings("upcast_layernorm")) is not None:
        reading.warnings.append(f"upcast_layernorm ({stated.place}): norms in float32 are counted in the other weights' format")


PARTS: tuple[Part, ...] = (model, batch, method, sharding, lora, optimizer, checkpointing, kernels, evaluation, vision, rest)
