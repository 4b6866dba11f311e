"""From what a job states to a plan: defaults, versions, names of adapted layers, and what is not counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.memory.builders import a_job, a_plan, a_transformer

from peakgate.memory.adapters import targets_of
from peakgate.memory.change import Value, with_changes
from peakgate.memory.defaults import DEFAULTS, default_of
from peakgate.memory.job import Batch, Checkpointing, Framework, Job, Lora, Method, Model
from peakgate.memory.lengths import sequence_of
from peakgate.memory.model import describe
from peakgate.memory.predict import predict
from peakgate.memory.profiles import PROFILES
from peakgate.memory.resolve import Resolved, resolve
from peakgate.memory.versions import builds_mask, repeats_heads, version_of


def resolved(job: Job, world: int = 1) -> Resolved:
    """The job with every field decided."""
    architecture = describe(job.model).architecture
    assert architecture is not None
    return resolve(job, architecture, world)


BARE = Job(model=Model(transformer=a_transformer()), batch=Batch(micro_batch_size=2, sequence_length=32))


@pytest.mark.parametrize("framework", [None, "textbook", "huggingface", "megatron", "deepspeed", "torchtune"])
@pytest.mark.parametrize("lora", [None, Lora(), Lora(base_dtype="nf4")])
def test_each_assumption_is_listed_once_with_its_source(framework: str | None, lora: Lora | None) -> None:
    """`field: value (source)`, and no field twice."""
    found = resolved(replace(BARE, framework=Framework(name=framework), lora=lora), world=4).assumptions
    fields = [each.partition(":")[0] for each in found]
    assert len(fields) == len(set(fields))
    assert all(each.endswith(")") and " (" in each for each in found)
    assert ("framework.name" in fields) == (framework is None)


def test_a_default_of_the_answer_is_the_tables() -> None:
    """What is assumed is what `catalog defaults` shows for the framework."""
    for line in resolved(replace(BARE, framework=Framework(name="megatron")), world=4).assumptions:
        field, _, rest = line.partition(": ")
        if not field.startswith(("dropout", "parallelism.world_size")):  # of the model, and of the degrees
            row = default_of("megatron", field)
            assert rest == f"{row.value} ({row.source})"


def test_a_stated_field_is_no_assumption() -> None:
    """The recipe, and every other word that the job says."""
    fields = [each.partition(":")[0] for each in resolved(a_job({"optimizer.name": "sgd", "batch.packed": True})).assumptions]
    assert not {"precision.recipe", "optimizer.name", "batch.packed", "framework.name"} & set(fields)


def test_every_default_names_its_source_once() -> None:
    """One row a framework and field; every framework's field has a row for all the others."""
    keys = [(row.framework, row.field) for row in DEFAULTS]
    assert len(keys) == len(set(keys))
    assert all(row.source and row.value for row in DEFAULTS)
    own = {"framework.megatron"}  # details that only one framework has
    everybodys = {field for framework, field in keys if framework == "*"}
    others = {field for framework, field in keys if framework != "*" and field.rpartition(".")[0] not in own}
    assert others <= everybodys | {"framework.version", "framework.bitsandbytes"}


@pytest.mark.parametrize(
    ("text", "want"),
    [("4.57.6", (4, 57, 6)), ("5.0", (5, 0)), ("4.54.dev0", (4, 54)), ("", ()), (None, ()), ("main", ())],
)
def test_a_version_is_its_leading_numbers(text: str | None, want: tuple[int, ...]) -> None:
    """Suffixes do not matter; what is no version says nothing."""
    assert version_of(text) == want


@pytest.mark.parametrize(
    ("version", "want_mask", "want_repeats"),
    [
        ("4.52.4", False, True),
        ("4.53", True, True),
        ("4.53.3", True, True),
        ("4.54", True, False),
        ("4.57.6", True, False),
        ("5.0.0", False, False),
        ("", False, False),
    ],
)
def test_versions_of_transformers_differ(version: str, want_mask: bool, want_repeats: bool) -> None:
    """4.53 to 4.57 build a mask nobody asked for; before 4.54 sdpa copies keys and values to every head."""
    assert builds_mask("huggingface", version) == want_mask
    assert repeats_heads("huggingface", version) == want_repeats
    assert not builds_mask("torchtune", version)
    assert not repeats_heads("textbook", version)


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, False),
        ({"framework.version": "4.57.6"}, True),
        ({"framework.version": "4.57.6", "attention.mask": "ones"}, False),
        ({"attention.mask": "ones"}, False),
        ({"attention.mask": "padding"}, True),
        ({"batch.packed": False}, True),
    ],
)
def test_a_mask_is_built_for_padding_or_by_the_library(changes: dict[str, Value], want: bool) -> None:
    """A mask of ones is seen through; padding is not."""
    assert a_plan(changes).builds_mask == want


def test_a_mask_costs_memory() -> None:
    """It takes the flash kernel away: keys and values are repeated and a bias is made for each layer."""
    with_mask, without = (predict(a_job({"attention.mask": mask})) for mask in ("padding", "none"))
    assert with_mask.saved_activation_bytes_per_layer > without.saved_activation_bytes_per_layer


@pytest.mark.parametrize(
    ("block", "names", "want"),
    [
        ("llama", ("q_proj", "v_proj"), {"q", "v"}),
        ("llama", ("model.layers.0.self_attn.q_proj",), {"q"}),
        ("llama", ("gate_proj", "up_proj", "down_proj"), {"gate", "up", "down"}),
        ("gpt2", ("q_proj", "v_proj"), {"qkv"}),
        ("gpt2", ("c_attn", "c_fc"), {"qkv", "up"}),
        ("gpt_neox", ("query_key_value", "dense"), {"qkv", "o"}),
        ("falcon", ("q_proj", "up_proj"), {"qkv", "up"}),
        ("phi3", ("q_proj", "gate_proj"), {"qkv", "gate_up"}),
        ("opt", ("q_proj", "fc2"), {"q", "down"}),
        ("gpt", ("k_proj", "o_proj"), {"qkv", "o"}),
        ("llama", ("all-linear",), {"q", "k", "v", "o", "qkv", "gate", "up", "down", "gate_up"}),
        ("llama", ("something_else",), {"something_else"}),
    ],
)
def test_targets_take_the_names_of_the_block(block: str, names: tuple[str, ...], want: set[str]) -> None:
    """Llama's names on every block: where the matrices are joined, the joined one is adapted."""
    architecture = describe(Model(transformer=a_transformer(block))).architecture
    assert architecture is not None
    assert targets_of(names, architecture, PROFILES["huggingface"]) == want


@pytest.mark.parametrize("block", ["gpt2", "gpt_neox", "falcon", "phi3", "gpt"])
def test_llamas_names_train_something_on_joined_matrices(block: str) -> None:
    """The default targets are q_proj and v_proj, whatever the block calls them."""
    answer = predict(a_job(model=a_transformer(block), lora=Lora()))
    assert 0 < answer.trainable_parameters < answer.parameters / 2


def test_the_base_of_adapters_is_the_recipes_unless_stated() -> None:
    """QLoRA states nf4; LoRA keeps the parameters' format, and says so."""
    assert a_plan(lora=Lora(base_dtype="nf4", double_quant=True)).lora is not None
    plan = a_plan(lora=Lora(base_dtype="nf4", double_quant=True)).lora
    assert plan is not None
    assert (plan.base_dtype, plan.double_quant) == ("nf4", True)
    assert "lora.base_dtype: bfloat16 (the recipe's parameters)" in resolved(a_job(lora=Lora())).assumptions


@pytest.mark.parametrize(
    ("batch", "want"),
    [
        (Batch(sequence_length=7), 7),
        (Batch(image_size=224, patch_size=16), 197),
        (Batch(grid=(4, 8, 8), patch=(2, 4, 4)), 8),
        (Batch(grid=(5, 8), patch=(2, 4)), 6),
        (Batch(grid=(5, 8), patch=(2,)), 0),
        (Batch(image_size=224), 0),
        (Batch(), 0),
    ],
)
def test_tokens_of_a_sequence(batch: Batch, want: int) -> None:
    """Stated, patches of an image with its class token, or patches of a grid; 0 when it cannot be said."""
    assert sequence_of(Job(batch=batch)) == want


@pytest.mark.parametrize(
    ("changes", "world", "want"),
    [
        ({}, 1, ("none", 1, 1)),
        ({}, 8, ("ddp", 8, 8)),
        ({"parallelism.sharding": "none"}, 8, ("ddp", 8, 8)),
        ({"parallelism.sharding": "zero3", "parallelism.tensor": 2}, 8, ("zero3", 4, 4)),
        ({"parallelism.sharding": "hsdp", "parallelism.shard_degree": 2}, 8, ("hsdp", 8, 2)),
        ({"parallelism.sharding": "fsdp", "parallelism.context": 2}, 8, ("fsdp", 4, 8)),
        ({"framework.name": "torchtitan"}, 8, ("fsdp", 8, 8)),
        ({"framework.name": "megatron", "framework.megatron.distributed_optimizer": True}, 8, ("zero1", 8, 8)),
    ],
)
def test_data_and_shard_degrees(changes: dict[str, Value], world: int, want: tuple[str, int, int]) -> None:
    """(sharding, data, shard): data = world / (tensor × pipeline × context); the shard degree defaults to data × context."""
    degrees = resolved(a_job(changes), world).plan.degrees
    assert (degrees.sharding, degrees.data, degrees.shard) == want


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"framework.name": "colossalai", "parallelism.sharding": "zero3"}, "parallelism.sharding"),
        ({"method.name": "ppo"}, "method.name"),
        ({"method.name": "distill"}, "method.teacher"),
        ({"offload.activations": "cpu"}, "offload"),
        ({"offload.parameters": "nvme"}, "offload"),
        ({"precision.compute": "float8"}, "precision"),
        ({"checkpointing.mode": "memory-budget"}, "checkpointing.mode"),
        ({"checkpointing.mode": "selective", "attention.implementation": "flash"}, "checkpointing.mode"),
        ({"framework.compile": True}, "framework"),
        ({"framework.cuda_graphs": "per-layer"}, "framework.cuda_graphs"),
        ({"save.full_state_dict": True, "framework.name": "megatron"}, "save"),
        ({"parallelism.context": 2, "attention.implementation": "eager"}, "parallelism.context"),
        ({"parallelism.expert": 2}, "parallelism"),
    ],
)
def test_what_is_not_counted_is_said(changes: dict[str, Value], want: str) -> None:
    """Such an answer is UNDECIDED, never silently wrong."""
    found = resolved(a_job(changes), world=8).undecided
    assert [each for each in found if each.startswith(want)]


@pytest.mark.parametrize(
    ("job", "want"),
    [
        (replace(a_job({"checkpointing.mode": "full", "checkpointing.every": 2}), frozen=("layers.0",)), "frozen"),
        (replace(a_job(), checkpointing=Checkpointing(mode="selective", modules=("moe_act",))), "checkpointing.modules"),
        (replace(a_job(), method=Method(teacher=Model(preset="gpt2"))), "method"),
        (a_job(lora=Lora(method="dora", base_dtype="nf4")), "lora.method"),
        (a_job({"framework.name": "litgpt"}, lora=Lora(base_dtype="int8")), "lora.base_dtype"),
    ],
)
def test_what_cannot_be_counted_of_lists_and_models_is_said(job: Job, want: str) -> None:
    """Frozen modules, other recomputed modules, a teacher, variants of adapters."""
    assert [each for each in resolved(job).undecided if each.startswith(want)]


def test_the_plain_job_is_decided() -> None:
    """Nothing of the builders' job is left out."""
    assert resolved(a_job()).undecided == ()


@pytest.mark.parametrize(
    ("recipe", "base", "want"), [("fp32", "bfloat16", "bfloat16"), ("amp-bf16", "bfloat16", "bfloat16"), ("bf16", "float32", "float32")]
)
def test_a_base_is_stored_in_its_own_format(recipe: str, base: str, want: str) -> None:
    """A stated format of the frozen base wins over the recipe's parameters."""
    plan = resolved(a_job({"precision.recipe": recipe}, lora=Lora(base_dtype=base))).plan
    assert plan.formats.parameters == want
    assert plan.formats.compute == ("bfloat16" if recipe == "amp-bf16" else want)


def test_the_longest_sequence_of_padded_data_decides() -> None:
    """Of capped data whose lengths are known the longest one counts, up to the cap."""
    job = a_job({"batch.sequence_length": 4096, "batch.sequence_length_is": "cap", "batch.sequence_lengths.max": 900})
    assert sequence_of(job) == 900
    assert sequence_of(with_changes(job, [("batch.sequence_length", 512)])) == 512
