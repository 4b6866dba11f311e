"""Models and optimizers as jobs."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import pytest
from tests.unit.client.live.fakes import Dtype, Model, Parameter, llama, wrapper

from peakgate.client import from_model, predict
from peakgate.client.errors import InputError


def an_optimizer(name: str, module: str = "torch.optim.adamw", **defaults: object) -> Any:
    """An optimizer of this class with these defaults."""
    return type(name, (), {"__module__": module, "defaults": defaults, "param_groups": []})()


@pytest.mark.parametrize(
    ("optimizer", "want"),
    [
        (an_optimizer("AdamW", foreach=None, fused=None), ("adamw", "foreach")),
        (an_optimizer("AdamW", foreach=None, fused=True), ("adamw", "fused")),
        (an_optimizer("Adam", foreach=False, fused=None), ("adam", "for-loop")),
        (an_optimizer("SGD", momentum=0.9, foreach=None), ("sgd-momentum", "foreach")),
        (an_optimizer("SGD", momentum=0, foreach=None), ("sgd", "foreach")),
        (an_optimizer("PagedAdamW8bit", "bitsandbytes.optim.adamw"), ("paged-adamw-8bit", None)),
        (an_optimizer("FusedAdam", "apex.optimizers.fused_adam"), ("adamw", "fused")),
    ],
)
def test_optimizers_have_names(optimizer: object, want: tuple[str, str | None]) -> None:
    """Class and switches, as a job document says them."""
    job = from_model(llama(), optimizer=optimizer)
    assert (job.get("optimizer.name"), job.get("optimizer.implementation")) == want


def test_an_optimizer_without_a_name_makes_the_answer_undecided() -> None:
    """It is said, not guessed."""
    assert "Shampoo" in str(from_model(llama(), optimizer=an_optimizer("Shampoo", "mine"))["unread"])


@pytest.mark.parametrize(
    ("dtype", "autocast", "want"),
    [
        ("torch.float32", None, "fp32"),
        ("torch.float32", "torch.bfloat16", "amp-bf16"),
        ("torch.float32", "float16", "amp-fp16"),
        ("torch.bfloat16", None, "bf16"),
        ("torch.bfloat16", "torch.bfloat16", "bf16"),
    ],
)
def test_formats(dtype: str, autocast: str | None, want: str) -> None:
    """The parameters' format and what the forward pass runs under, as a dtype or by its name."""
    under = Dtype(autocast) if autocast and autocast.startswith("torch.") else autocast
    assert from_model(llama(parameters={"w.weight": Parameter(dtype=dtype)}), autocast=under)["precision.recipe"] == want


@pytest.mark.parametrize(
    ("name", "want"), [("DistributedDataParallel", "ddp"), ("FullyShardedDataParallel", "fsdp"), ("DataParallel", None)]
)
def test_wrappers_tell_the_sharding(name: str, want: str | None) -> None:
    """And are looked through."""
    job = from_model(wrapper(name, module=llama()), world_size=8)
    assert job.get("parallelism.sharding") == want
    assert "model.hf_config" in job


def test_fully_shard_and_compile() -> None:
    """FSDP2 renames the class; torch.compile wraps it."""
    kind = type("FSDPLlama", (Model,), {"set_reshard_after_forward": lambda _: None})
    job = from_model(wrapper("OptimizedModule", _orig_mod=kind(config=llama().config)), world_size=8)
    assert (job["parallelism.sharding"], job["framework.fsdp.version"], job["framework.compile"]) == ("fsdp", 2, True)


@pytest.mark.parametrize("name", ["is_gradient_checkpointing", "is_activation_checkpointing"])
def test_checkpoints_and_their_kind(name: str) -> None:
    """What gradient_checkpointing_enable, or activation_checkpointing_enable, has left on the model."""
    bound = partial(print, use_reentrant=False)
    job = from_model(llama(_gradient_checkpointing_func=bound, **{name: True}))
    assert (job["checkpointing.mode"], job["checkpointing.reentrant"]) == ("full", False)


def test_frozen_modules_are_named_from_outside() -> None:
    """A tower is one name; a layer whose half is trained is named by its part."""
    parameters = {
        "tower.a.weight": Parameter(trained=False),
        "tower.b.weight": Parameter(trained=False),
        "model.layers.0.attn.weight": Parameter(),
        "model.layers.0.mlp.weight": Parameter(trained=False),
        "model.layers.0.mlp.bias": Parameter(trained=False),
    }
    assert from_model(llama(parameters=parameters))["frozen"] == ["tower", "model.layers.0.mlp"]


def test_a_model_without_a_configuration_is_its_count() -> None:
    """And the answer says what that leaves open."""
    job = from_model(Model({"w": Parameter(1_000_000)}), micro_batch_size=2, gpu="h100-80gb")
    assert (job["model.parameters"], job["framework.name"]) == (1_000_000, "torch")
    assert "bare count" in predict(job).reason


def test_predict_names_bad_fields() -> None:
    """A document that is no job is an error about its field."""
    with pytest.raises(InputError) as caught:
        predict({"model": {"preset": "gpt2"}, "bath": {}})
    assert caught.value.fields[0][0] == "bath"


def test_nothing_heavy_is_imported() -> None:
    """Neither PyTorch nor transformers, nor even gRPC, by importing the package."""
    code = "import sys, peakgate.client; print(sorted({'torch', 'transformers', 'grpc', 'yaml'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.torch
def test_a_real_model() -> None:
    """A transformers model with torch's AdamW, a frozen embedding and checkpoints, as its objects are."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512}
    model = LlamaForCausalLM(LlamaConfig(**sizes))
    model.activation_checkpointing_enable({"use_reentrant": False})
    model.model.embed_tokens.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    job = from_model(model, micro_batch_size=2, sequence_length=128, optimizer=optimizer, autocast=torch.bfloat16, gpu="h100-80gb")
    want = {
        "precision.recipe": "amp-bf16",
        "optimizer.implementation": "fused",
        "checkpointing.mode": "full",
        "checkpointing.reentrant": False,
        "frozen": ["model.embed_tokens"],
        "attention.implementation": "sdpa",
    }
    assert {path: job.get(path) for path in want} == want
    answer = predict(job)
    assert answer.model.parameters == sum(each.numel() for each in model.parameters())
    assert answer.model.trainable_parameters == sum(each.numel() for each in model.parameters() if each.requires_grad)
