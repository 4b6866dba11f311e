"""What OpenRLHF's flags mean, part by part; `openrlhf.py` names the sources."""

from __future__ import annotations

from peakgate.readers.convert import always, flag, one_of, positive
from peakgate.readers.finetuners.attention import attention
from peakgate.readers.finetuners.launched import Part, world_of
from peakgate.readers.finetuners.liger import state_liger
from peakgate.readers.finetuners.models import state_model
from peakgate.readers.finetuners.ranks import state_lora
from peakgate.readers.finetuners.values import amount, count, not_counted, numbers_only, on, say, say_or_default
from peakgate.readers.finetuners.zero import CASTS
from peakgate.readers.launch import Launch
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

OWN = "OpenRLHF (cli/train_sft.py)"
RAY_OWN = "OpenRLHF (cli/train_ppo_ray.py)"
STAGES = ("ddp", "zero1", "zero2", "zero3")
OLDER = ("flash_attn", "bf16", "prompt_max_len")
"""Flags that only versions before 0.9 have."""

ROWS = (
    Row("micro_train_batch_size", "batch.micro_batch_size", positive),
    Row("max_len", "batch.sequence_length", positive),
    Row("adam_offload", "offload.optimizer", always("cpu")),
    Row("overlap_comm", "framework.zero.overlap_comm", flag),
    Row("grad_accum_dtype", "precision.gradients", one_of({"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"})),
    Row("gradient_checkpointing", "checkpointing.mode", always("full")),
)
SIZES = ("train_batch_size", "zero_stage", "lora_rank", "actor_num_nodes", "actor_num_gpus_per_node", "prompt_max_len")
NOT_COUNTED = ("deepcompile", "enable_ema", "aux_loss_free")


def model(settings: Settings, launch: Launch, reading: Reading) -> None:
    """The model that is trained, and a teacher."""
    state_model(settings("pretrain"), launch, reading)
    state_model(settings("teacher_model"), launch, reading, "method.teacher")


def step(settings: Settings, launch: Launch, reading: Reading) -> None:
    """Sizes, kernels, ZeRO and formats of whatever is trained."""
    apply(ROWS, settings, reading)
    stage = settings("zero_stage")
    level = min(count(stage), 3) if stage is not None else 2
    say_or_default(reading, "parallelism.sharding", STAGES[level], stage, f"{OWN}: zero_stage")
    _formats(settings, reading)
    _attention(settings, reading)
    if on(settings("gradient_checkpointing")) and (kind := settings("gradient_checkpointing_use_reentrant")) is not None:
        say(reading, "checkpointing.reentrant", on(kind), kind)
    reading.default("optimizer.name", "adamw", "OpenRLHF (utils/deepspeed: FusedAdam)")
    if (named := settings("optim")) is not None and named.text == "muon":
        say(reading, "optimizer.name", "muon", named)
    packing = settings("packing_samples")
    say_or_default(reading, "batch.packed", on(packing), packing, f"{OWN}: packing_samples")
    reading.default("batch.sequence_length_is", "cap", f"{OWN}: max_len")
    _degrees(settings, launch, reading)
    _lora(settings, reading)
    if (pieces := settings("zpg")) is not None and count(pieces) > 1:
        reading.cannot_say("zpg: a second copy of the weights in each node", pieces.place)
    not_counted(NOT_COUNTED, settings, reading)
    numbers_only(SIZES, settings, reading)


def _formats(settings: Settings, reading: Reading) -> None:
    """bfloat16 today; before 0.9 only behind --bf16."""
    dtype, older = settings("param_dtype"), settings("bf16")
    if dtype is not None and dtype.text in ("fp16", "float16"):
        say(reading, "precision.recipe", "deepspeed-fp16", dtype)
    elif dtype is None and older is None and any(settings(name) is not None for name in OLDER):
        reading.default("precision.recipe", "fp32", "OpenRLHF before 0.9 (--bf16)")
    else:
        say_or_default(reading, "precision.recipe", "deepspeed-bf16", dtype or older, f"{OWN}: param_dtype")


def _attention(settings: Settings, reading: Reading) -> None:
    """Packed samples need FlashAttention: whatever else is asked for, it is switched on (cli/train_*.py: packing_samples)."""
    named, switch, packing = settings("attn_implementation"), settings("flash_attn"), settings("packing_samples")
    if packing is not None and on(packing) and (named is None or "flash" not in named.text):
        say(reading, "attention.implementation", "flash", packing)
    elif named is not None:
        apply((Row("attn_implementation", "attention.implementation", attention),), settings, reading)
    elif switch is not None and on(switch):
        say(reading, "attention.implementation", "flash", switch)
    elif any(settings(name) is not None for name in OLDER):
        reading.default("attention.implementation", "eager", "OpenRLHF before 0.9 (models/actor.py: --flash_attn)")
    else:
        reading.default("attention.implementation", "flash", f"{OWN}: attn_implementation")


def _degrees(settings: Settings, launch: Launch, reading: Reading) -> None:
    ring, tensor = settings("ring_attn_size"), settings("ds_tensor_parallel_size")
    if ring is not None and count(ring) > 1:
        say(reading, "parallelism.context", count(ring), ring)
        say(reading, "parallelism.context_type", "ring", ring)
    if tensor is not None and count(tensor) > 1:
        say(reading, "parallelism.tensor", count(tensor), tensor)
    world, total, micro = world_of(launch, reading), settings("train_batch_size"), count(settings("micro_train_batch_size"))
    if world and micro and "batch.gradient_accumulation_steps" not in reading.fields:
        steps = (count(total) or 128) * max(count(ring), 1) * max(count(tensor), 1) // micro // world
        say_or_default(reading, "batch.gradient_accumulation_steps", max(steps, 1), total, f"{OWN}: train_batch_size")


def _lora(settings: Settings, reading: Reading) -> None:
    if not state_lora(settings, reading, f"{OWN}: target_modules"):
        return
    reading.default("lora.adapter_dtype", "bfloat16", CASTS)
    if (four := settings("load_in_4bit")) is not None and on(four):
        say(reading, "lora.base_dtype", "nf4", four)
        reading.default("lora.double_quant", True, "OpenRLHF (models/actor.py: bnb_4bit_use_double_quant)")


def preference(settings: Settings, _: Launch, reading: Reading) -> None:
    """The default sizes and the reference of the programs that keep one."""
    name = reading.get("method.name")
    sizes = {"sft": 8, "pretrain": 8, "dpo": 8, "kto": 8, "reward": 1, "distill": 8}
    reading.default("batch.micro_batch_size", sizes[str(name)], "OpenRLHF (cli: micro_batch_size)")
    reading.default("batch.sequence_length", 2048 if name in ("sft", "pretrain", "distill") else 512, "OpenRLHF (cli: max_len)")
    if name in ("dpo", "kto"):
        reading.default("method.reference", "full", "OpenRLHF (cli/train_dpo.py: ref_model)")
        _reference_on_the_host(settings, reading)
    if (data := settings("eval_dataset")) is not None and count(settings("micro_train_batch_size")):
        say(reading, "evaluate.micro_batch_size", count(settings("micro_train_batch_size")), data)


def _reference_on_the_host(settings: Settings, reading: Reading) -> None:
    """--ref_offload streams the reference's weights from main memory (utils/deepspeed: get_ds_eval_config, offload_param)."""
    moved = settings("ref_offload")
    if moved is not None and on(moved):
        reading.warnings.append(
            f"method.reference: the reference's weights stay in main memory, and are counted on the card ({moved.place})"
        )


def kernels(settings: Settings, _: Launch, reading: Reading) -> None:
    """Liger's kernels; the loss is made of logits."""
    stated = settings("use_liger_kernel")
    if stated is not None and on(stated):
        state_liger(stated, reading)
        reading.fields.pop("loss.implementation", None)


def ray(settings: Settings, launch: Launch, reading: Reading) -> None:
    """The actor's GPUs and the method, and who shares the actor's cards."""
    each, nodes = settings("actor_num_gpus_per_node"), settings("actor_num_nodes")
    say_or_default(reading, "parallelism.world_size", (count(each) or 8) * (count(nodes) or 1), each or nodes, RAY_OWN)
    estimator = settings("advantage_estimator")
    word = estimator.text if estimator is not None else "gae"
    if word in ("gae", "group_norm", "dr_grpo"):
        say_or_default(reading, "method.name", "ppo" if word == "gae" else "grpo", estimator, RAY_OWN)
    elif estimator is not None:
        reading.cannot_say(f"advantage estimator {word[:40]}", estimator.place)
    if word == "gae":
        state_model(settings("critic_pretrain") or settings("reward_pretrain") or settings("pretrain"), launch, reading, "method.critic")
    if settings("remote_rm_url") is None:
        state_model(settings("reward_pretrain"), launch, reading, "method.reward")
    penalty = settings("init_kl_coef")
    kept = penalty is None or amount(penalty) > 0
    say_or_default(reading, "method.reference", "full" if kept else "none", penalty, RAY_OWN)


def rollout(settings: Settings, _: Launch, reading: Reading) -> None:
    """Lengths, and vLLM on the actor's cards where all models share them."""
    prompt, answer = settings("prompt_max_len"), settings("generate_max_len")
    apply((Row("generate_max_len", "batch.target_length", positive),), settings, reading)
    if settings("max_len") is None and (prompt is not None or answer is not None):
        source = answer or prompt
        say_or_default(reading, "batch.sequence_length", (count(prompt) or 1024) + (count(answer) or 1024), source, RAY_OWN)
    reading.default("batch.sequence_length", 2048, f"{RAY_OWN}: max_len")
    dynamic, tokens = settings("use_dynamic_batch"), settings("train_max_tokens_per_gpu")
    if dynamic is not None and on(dynamic):
        for path in ("batch.sequence_length", "batch.micro_batch_size", "batch.packed"):
            reading.fields.pop(path, None)
        say_or_default(reading, "batch.sequence_length", count(tokens) or 16192, tokens, RAY_OWN)
        say(reading, "batch.micro_batch_size", 1, dynamic)
        say(reading, "batch.packed", True, dynamic)
    reading.default("batch.micro_batch_size", 1 if settings.has("train") else 4, RAY_OWN)
    _engine(settings, reading)


def _engine(settings: Settings, reading: Reading) -> None:
    engines, shared = settings("vllm_num_engines"), settings("colocate_all_models")
    if engines is None or not count(engines):
        say_or_default(reading, "method.generation.mode", "none", engines, RAY_OWN)
        return
    colocated = on(shared)
    say(
        reading, "method.generation.mode", "colocated" if colocated else "separate", shared if colocated and shared is not None else engines
    )
    if not colocated:
        return
    share, sleep = settings("vllm_gpu_memory_utilization"), settings("vllm_enable_sleep")
    say_or_default(reading, "method.generation.memory_fraction", amount(share) or 0.95, share, RAY_OWN)
    say_or_default(reading, "method.generation.sleep", on(sleep), sleep, RAY_OWN)


PARTS: tuple[Part, ...] = (model, step, preference, kernels)
RAY: tuple[Part, ...] = (ray, model, step, rollout, kernels)
