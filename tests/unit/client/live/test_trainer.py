"""Trainers as jobs."""

from __future__ import annotations

from types import SimpleNamespace

from tests.unit.client.live.fakes import CONFIG, Option, Parameter, PeftType, arguments, llama, trainer

from peakgate.client import from_trainer, predict
from peakgate.client.live.trainer import read_trainer


def test_arguments_become_fields() -> None:
    """What TrainingArguments state is stated, by the tables of launches; what they leave off is not."""
    args = arguments(bf16=True, gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False}, fsdp=[])
    job = from_trainer(trainer(args, llama()), sequence_length=2048, gpu="h100-80gb")
    want = {
        "batch.micro_batch_size": 4,
        "batch.gradient_accumulation_steps": 2,
        "batch.sequence_length": 2048,
        "precision.recipe": "amp-bf16",
        "checkpointing.mode": "full",
        "checkpointing.reentrant": False,
        "optimizer.name": "adamw",
        "optimizer.implementation": "fused",
        "attention.implementation": "flash",
        "gpu.type": "h100-80gb",
    }
    assert {path: job.get(path) for path in want} == want
    config = job["model.hf_config"]
    assert isinstance(config, dict)
    assert config.items() >= CONFIG.items()
    assert not {"parallelism.sharding", "evaluate.micro_batch_size", "unread", "loss.implementation"} & set(job)


def test_each_field_names_its_attribute() -> None:
    """The place of a field is the attribute that it was read from."""
    reading = read_trainer(trainer(arguments(bf16=True), llama()))
    assert str(reading.fields["batch.micro_batch_size"].place) == "TrainingArguments.per_device_train_batch_size"
    assert str(reading.fields["model.hf_config"].place) == "model.config"
    assert str(reading.fields["attention.implementation"].place) == "model.config._attn_implementation"


def test_the_model_tells_its_format() -> None:
    """bf16 of a model that is in 16 bits already is no autocast of float32 weights."""
    half = llama(parameters={"w.weight": Parameter(dtype="torch.bfloat16")})
    assert from_trainer(trainer(arguments(bf16=True), half))["precision.recipe"] == "bf16"


def test_fsdp_of_the_arguments() -> None:
    """The Trainer's own --fsdp, with ranks from accelerate."""
    args = arguments(bf16=True, fsdp=[Option.FULL_SHARD], fsdp_config={"fsdp_version": 2})
    job = from_trainer(trainer(args, llama(), accelerator=SimpleNamespace(num_processes=8)))
    assert (job["parallelism.sharding"], job["parallelism.world_size"], job["precision.recipe"]) == ("fsdp", 8, "fsdp-bf16")


def test_fsdp_of_accelerate() -> None:
    """A plugin that `accelerate launch` has made counts as its flags do."""
    plugin = SimpleNamespace(
        fsdp_version=2, reshard_after_forward=True, cpu_offload=SimpleNamespace(offload_params=True), activation_checkpointing=True
    )
    state = SimpleNamespace(fsdp_plugin=plugin, mixed_precision="bf16")
    job = from_trainer(trainer(arguments(), llama(), accelerator=SimpleNamespace(num_processes=4, state=state)))
    assert (job["parallelism.sharding"], job["framework.fsdp.version"], job["framework.fsdp.reshard_after_forward"]) == ("fsdp", 2, True)
    assert (job["offload.parameters"], job["checkpointing.mode"]) == ("cpu", "full")


def test_ranks_without_sharding_are_ddp() -> None:
    """Several ranks and no plugin: DistributedDataParallel."""
    job = from_trainer(trainer(arguments(), llama(), accelerator=SimpleNamespace(num_processes=2)))
    assert job["parallelism.sharding"] == "ddp"


def test_deepspeed_as_the_trainer_filled_it_in() -> None:
    """The configuration whose `auto` values are numbers by now is taken instead of the file."""
    config = {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": True}}
    args = arguments(deepspeed="missing.json", bf16=True, hf_deepspeed_config=SimpleNamespace(config=config))
    job = from_trainer(trainer(args, llama(), accelerator=SimpleNamespace(num_processes=8)))
    assert (job["parallelism.sharding"], job["offload.optimizer"], job["precision.recipe"]) == ("zero3", "cpu", "deepspeed-bf16")


def test_trl_with_adapters() -> None:
    """The method by the trainer's class, adapters by the model's own, the reference that follows from both."""
    adapter = {"r": 16, "lora_dropout": 0.1, "target_modules": {"q_proj", "v_proj"}, "peft_type": PeftType.LORA, "modules_to_save": None}
    model = llama(
        parameters={"base.weight": Parameter(1000, "torch.bfloat16", trained=False), "q_proj.lora_A.weight": Parameter(8)},
        peft_config={"default": SimpleNamespace(to_dict=lambda: adapter)},
    )
    args = arguments(bf16=True, max_length=4096, precompute_ref_log_probs=False)
    job = from_trainer(trainer(args, model, of="DPOTrainer", module="trl.trainer.dpo_trainer"))
    want = {"method.name": "dpo", "method.reference": "adapter", "batch.sequence_length": 4096, "lora.rank": 16, "lora.dropout": 0.1}
    want |= {"lora.targets": ["q_proj", "v_proj"], "lora.base_dtype": "bfloat16", "lora.adapter_dtype": "float32"}
    assert {path: job.get(path) for path in want} == want


def test_no_limit_is_no_default() -> None:
    """TRL's arguments without a length do not become TRL's default."""
    job = from_trainer(trainer(arguments(max_length=None, packing=False), llama(), of="SFTTrainer", module="trl.trainer.sft_trainer"))
    assert "batch.sequence_length" not in job
    assert job["method.name"] == "sft"


def test_quantised_base() -> None:
    """A 4-bit base is that of its configuration, which is no part of the model's sizes."""
    bits = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
    model = llama(peft_config={"default": {"r": 8, "peft_type": "LORA"}})
    model.config.quantization_config = bits  # type: ignore[attr-defined]  # a fake config takes what it is given
    job = from_trainer(trainer(arguments(bf16=True), model, of="SFTTrainer", module="trl.trainer.sft_trainer"))
    assert (job["lora.base_dtype"], job["lora.double_quant"]) == ("nf4", True)
    assert "quantization_config" not in str(job["model.hf_config"])


def test_the_document_is_answered() -> None:
    """What comes out is a job that the service judges."""
    job = from_trainer(trainer(arguments(bf16=True), llama()), sequence_length=512, gpu="h100-80gb")
    assert predict(job).peak.bound_bytes > 0
