"""LitGPT's kernels, adapters and loop, held against its published tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.accuracy import Json, at, number, rows
from tests.unit.memory.builders import a_job, a_plan, a_transformer, job_of, sizes_of, stages_of

from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Job, Lora
from peakgate.memory.predict import predict
from peakgate.memory.step import walk

ROWS = {str(row["id"]): row for row in rows("published_jobs") if at(row, "job.framework.name") == "litgpt"}
ONE_GPU = {key: row for key, row in ROWS.items() if number(row, "job.parallelism.world_size") == 1}
TABLE = {key: row for key, row in ONE_GPU.items() if "-rt-" in key and at(row, "outcome.kind") == "measured"}
TOO_LARGE = {key: row for key, row in ONE_GPU.items() if at(row, "outcome.kind") == "oom" and "-gemma-" not in key}
HUB = {key: row for key, row in ONE_GPU.items() if "-hub-" in key and at(row, "outcome.kind") == "measured" and "-gemma-" not in key}
PARTS = Lora(rank=4, targets=("q_proj", "v_proj"), dropout=0.05)
FOUR_BIT = Lora(rank=4, targets=("q_proj", "v_proj"), base_dtype="nf4", double_quant=False)


def a_litgpt(changes: dict[str, Value] | None = None, *, lora: Lora | None = None) -> Job:
    """The builders' small Llama under LitGPT 0.3, the package."""
    return a_job({"framework.name": "litgpt", "framework.version": "0.3", **(changes or {})}, lora=lora)


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_the_resource_table(row: Json) -> None:
    """tutorials/resource-tables.md at 8641822: twelve peaks of LoRA and QLoRA on one A100, within 0.5 %."""
    answer = predict(job_of(row["job"]))
    assert answer.undecided == ()
    assert answer.allocated_bytes == pytest.approx(number(row, "outcome.peak_bytes"), rel=0.005)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("litgpt-lora-stablelm3b-bf16mixed", 0.002), ("litgpt-falcon7b-lora-alpaca-full", 0.01), ("litgpt-falcon7b-lora-alpaca-256", 0.005)],
)
def test_frozen_weights_under_autocast_and_one_group(name: str, tolerance: float) -> None:
    """Autocast casts a frozen weight at every call and its node keeps the copy; Falcon's one key-value head takes the math path."""
    assert predict(job_of(ROWS[name]["job"])).allocated_bytes == pytest.approx(number(ROWS[name], "outcome.peak_bytes"), rel=tolerance)


@pytest.mark.parametrize("row", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_ran_out_of_memory_does_not_fit(row: Json) -> None:
    """The rows that print OOM are above their card; with Hugging Face's kernels Llama-2-7B at four sequences would have been below."""
    assert predict(job_of(row["job"])).required_bytes > number(row, "outcome.capacity_bytes")


@pytest.mark.parametrize("row", HUB.values(), ids=HUB)
def test_the_package_holds_the_graph_of_the_batch_before(row: Json) -> None:
    """config_hub/finetune: bitsandbytes 0.42 pins inputs to the graph, and `logits` name it until the next forward pass returns."""
    job = with_changes(job_of(row["job"]), [("framework.version", "0.1")])
    assert predict(job).allocated_bytes == pytest.approx(number(row, "outcome.peak_bytes"), rel=0.01)


def test_without_a_version_it_is_the_scripts() -> None:
    """Lit-GPT had no versions: the answer says what it stands on, and so does the version of bitsandbytes."""
    job = a_litgpt(lora=FOUR_BIT)
    assumed = predict(replace(job, framework=replace(job.framework, version=None))).assumptions
    assert any(line.startswith("framework.version: before 0.1") for line in assumed)
    assert any(line.startswith("framework.bitsandbytes: 0.42.0") for line in assumed)


def test_a_newer_bitsandbytes_keeps_no_inputs() -> None:
    """autograd/_functions.py: (A, B) up to 0.42, (None, B) after; weights that are not quantised do not care."""
    new: dict[str, Value] = {"framework.bitsandbytes": "0.43.3"}
    assert predict(a_litgpt(new, lora=FOUR_BIT)).live_bytes < predict(a_litgpt(lora=FOUR_BIT)).live_bytes
    assert predict(a_litgpt(new, lora=PARTS)).live_bytes == predict(a_litgpt(lora=PARTS)).live_bytes


def test_quantised_weights_can_need_more() -> None:
    """With many tokens the inputs that 4-bit products keep outweigh what the weights save: QLoRA is then above LoRA."""
    for tokens, want in ((8, False), (4096, True)):
        changes: dict[str, Value] = {"batch.sequence_length": tokens}
        plain = replace(FOUR_BIT, base_dtype=None, double_quant=None)
        model = a_transformer(hidden_size=1024, ffn_hidden_size=4096, layers=4)
        sizes = [predict(replace(a_litgpt(changes, lora=lora), model=a_job(model=model).model)).live_bytes for lora in (FOUR_BIT, plain)]
        assert (sizes[0] > sizes[1]) is want


@pytest.mark.parametrize("version", ["", "0.3"])
@pytest.mark.parametrize("lora", [PARTS, FOUR_BIT], ids=["lora", "4bit"])
def test_layers_walked_once_stand_for_all(version: str, lora: Lora) -> None:
    """What is pinned in equal layers is let go in all of them: the same highs as with every layer walked."""
    changes: dict[str, Value] = {"framework.name": "litgpt", "framework.version": version}
    plan = a_plan(changes, model=a_transformer(layers=6), lora=lora)
    (stage,) = stages_of(plan)
    assert {phase: live for phase, (live, _) in sizes_of(walk(plan, stage).highs).items()} == {
        phase: live for phase, (live, _) in sizes_of(walk(plan, stage, record=True).highs).items()
    }


@pytest.mark.parametrize(("targets", "parts"), [(("q_proj",), 64), (("q_proj", "v_proj"), 80), (("c_attn",), 96)])
def test_adapters_of_a_joined_matrix(targets: tuple[str, ...], parts: int) -> None:
    """lora.py LoRAQKVLinear: one lora_A of rank x parts, one grouped lora_B over the adapted widths (64 of queries, 16 of keys, values)."""
    count = {64: 1, 80: 2, 96: 3}[parts]
    answer = predict(a_litgpt(lora=Lora(rank=4, targets=targets)))
    assert answer.trainable_parameters == 3 * 4 * (count * 64 + parts)


def test_the_head_is_adapted_and_quantised() -> None:
    """lightning bitsandbytes.py replaces every nn.Linear; LoRA's target lm_head is litgpt's lora_head."""
    whole = predict(a_litgpt(lora=Lora(rank=4, targets=("q_proj",))))
    head = predict(a_litgpt(lora=Lora(rank=4, targets=("q_proj", "lm_head"))))
    assert head.trainable_parameters - whole.trainable_parameters == 4 * (64 + 250)


def test_4_bit_weights_page_their_optimizer() -> None:
    """finetune/lora.py takes bnb.optim.PagedAdamW where the base is quantised, and the answer says so."""
    assert any(line.startswith("optimizer.name: paged-adamw") for line in predict(a_litgpt(lora=FOUR_BIT)).assumptions)
    assert not any(line.startswith("optimizer.name: paged") for line in predict(a_litgpt(lora=PARTS)).assumptions)


def test_a_block_without_kernels_is_undecided() -> None:
    """LitGPT's table of blocks does not have OPT: the figures are partly Hugging Face's, and the answer says so."""
    answer = predict(replace(a_litgpt(), model=a_job(model=a_transformer("opt")).model))
    assert any("no kernels of the block 'opt'" in line for line in answer.undecided)


def test_the_loss_is_of_fp32_logits_in_either_form() -> None:
    """Precision.convert_output: chunked or not, fp32 logits and their log-probabilities lie side by side at the start of backward."""
    full, chunked = (predict(a_litgpt({"loss.implementation": name})) for name in ("full", "chunked"))
    tokens = 2 * 32 * 250 * 4
    for answer in (full, chunked):
        assert answer.live_bytes > 2 * tokens
    assert full.undecided == chunked.undecided == ()
