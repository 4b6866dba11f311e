"""torchtitan's published Llama-3.1-8B runs: what its console calls max_reserved, from a replay of every allocation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.accuracy import Json, number, rows
from tests.unit.memory.builders import a_job, a_plan, a_transformer, first_walk, job_of

from peakgate.memory.change import Value, with_changes
from peakgate.memory.favourable import favourable
from peakgate.memory.job import Job
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.memory.profiles import profile_name
from peakgate.memory.saved_bytes import saved_bytes_per_layer

GIB = 1 << 30

FACTS: dict[str, dict[str, Value]] = {
    "titan-8b-fsdp8-eager": {"framework.expandable_segments": False},
    "titan-8b-fsdp8-compile": {"framework.expandable_segments": False},
    "titan-8b-fsdp8-fp8": {"framework.expandable_segments": False},
    "titan-8b-fsdp128-eager": {"framework.expandable_segments": False},
    "titan-8b-fsdp128-compile": {"framework.expandable_segments": False},
    "titan-8b-fsdp128-fp8": {"framework.expandable_segments": False},
    "titan-8b-h200-32": {"framework.expandable_segments": False, "framework.version": "0.1.0"},
    "titan-8b-h200-64": {"framework.expandable_segments": False, "framework.version": "0.1.0"},
    "titan-8b-cp1-s32768": {},
    "titan-8b-cp2-s65536": {},
    "titan-8b-cp4-s131072": {},
    "titan-8b-cp8-s262144": {},
    "titan-8b-h100-lb1-fsdp8": {"framework.version": "0.1.0"},
    "titan-8b-h100-lb1-fsdp8-aug25": {"framework.version": "0.2.0"},
}
"""What the documents leave open: the age by the report's date (December 2024, June, July, August 2025), and the launch script. The H200
report prints its bare torchrun line; for the tables of December 2024 the allocator's mode is not printed: multinode_trainer.slurm sets
none, run_llama_train.sh sets expandable segments, and each table takes the one that it is near."""

ROWS = {str(row["id"]): row for row in rows("published_jobs") if row["id"] in FACTS}


def job_of_row(row: Json) -> Job:
    """The document with its facts."""
    return with_changes(job_of(row["job"]), FACTS[str(row["id"])].items())


@pytest.mark.parametrize("name", FACTS)
def test_a_published_reservation_is_met(name: str) -> None:
    """To 1 %: pools by stream, units, kept operations, the compiled layer and loss, each from the source; nothing is fitted."""
    answer = predict(job_of_row(ROWS[name]), exact=True)
    assert answer.reserved_bytes == pytest.approx(number(ROWS[name], "outcome.peak_bytes"), rel=0.01)


@pytest.mark.parametrize("name", FACTS)
def test_the_ratio_is_near_the_replay(name: str) -> None:
    """With expandable segments the path without a replay is within 1 % of it, in reserved and in required bytes. With native ones it is
    within 7 and 12 %: a kept activation may split a segment that the loss needs whole."""
    job = job_of_row(ROWS[name])
    fast, slow = predict(job), predict(job, exact=True)
    native = FACTS[name].get("framework.expandable_segments") is False
    assert fast.reserved_bytes == pytest.approx(slow.reserved_bytes, rel=0.07 if native else 0.01)
    assert fast.required_bytes == pytest.approx(slow.required_bytes, rel=0.12 if native else 0.01)


def test_nothing_of_these_runs_is_left_open() -> None:
    """Compiled layers, 8-bit products under them, per-operation checkpointing and context parallelism are counted."""
    assert not [name for name, row in ROWS.items() if predict(job_of_row(row)).undecided]


@pytest.mark.parametrize(
    ("version", "want"),
    [(None, "torchtitan"), ("0.0.2", "torchtitan"), ("0.1.0", "torchtitan 0.1"), ("0.2.0", "torchtitan 0.2"), ("1", "torchtitan 0.2.1")],
)
def test_a_version_has_the_kernels_of_its_age(version: str | None, want: str) -> None:
    """Without a version the first age holds: its loss is not compiled, so it needs the most memory."""
    assert profile_name("torchtitan", version) == want


def test_later_ages_need_no_more() -> None:
    """Units of their own for embedding and head, no kept layer, a fused norm."""
    row = ROWS["titan-8b-h100-lb1-fsdp8"]
    peaks = [predict(with_changes(job_of(row["job"]), [("framework.version", v)])).allocated_bytes for v in ("0.0.2", "0.1.0", "0.2.0")]
    assert min(peaks[:2]) > peaks[2]


def test_a_version_that_is_not_stated_rejects_nothing() -> None:
    """The most favourable version stands among the values under which a rejection must hold."""
    job = job_of(ROWS["titan-8b-h200-32"]["job"])
    assert ("framework.version", "0.2.1") in favourable(job)
    assert predict(with_changes(job, favourable(job))).required_bytes < predict(job).required_bytes


TITAN: dict[str, Value] = {
    "framework.name": "torchtitan",
    "precision.recipe": "fsdp-bf16",
    "parallelism.sharding": "fsdp",
    "parallelism.world_size": 2,
}


def test_what_a_selective_checkpoint_keeps() -> None:
    """A layer: its input 2Th, wq 2Tq, wv 2Tkv, w1 2Tf, w2 2Th, the attention's output 2Tq, 4aT and its random state (_save_list; each
    second product)."""
    changes = TITAN | {"checkpointing.mode": "selective"}
    few, more = (held(changes | {"model.transformer.layers": n}) for n in (8, 9))
    d = a_plan(changes).architecture.dims
    tokens = 2 * 32
    assert more - few == tokens * 2 * (2 * d["h"] + 2 * d["q"] + d["kv"] + d["f"]) + 4 * d["a"] * tokens + ROUNDED_STATE


ROUNDED_STATE = 512
"""24 bytes of random state take a block."""


def test_a_compiled_layer_does_not_keep_the_last_product() -> None:
    """The backward graph does not read w2's output, so the partitioner drops it; the random state is inductor's own."""
    changes = TITAN | {"checkpointing.mode": "selective"}
    eager, compiled = (
        held(changes | {"model.transformer.layers": 9, "framework.compile": value})
        - held(changes | {"model.transformer.layers": 8, "framework.compile": value})
        for value in (False, True)
    )
    assert eager - compiled == 2 * 2 * 32 * a_plan(changes).architecture.dims["h"] + ROUNDED_STATE


def held(changes: dict[str, Value]) -> int:
    """Activation blocks at the start of the backward pass."""
    plan = a_plan(changes)
    return first_walk(plan).held_per_micro_batch


def test_a_compiled_layer_has_the_weights_of_the_eager_one() -> None:
    """The same count, the same gradients, the same bytes that autograd would keep without checkpointing."""
    eager, compiled = (predict(a_job(TITAN | {"framework.compile": value})) for value in (False, True))
    assert (eager.parameters, eager.trainable_parameters) == (compiled.parameters, compiled.trainable_parameters)
    assert eager.states_bytes == compiled.states_bytes
    plan = a_plan(TITAN)
    assert saved_bytes_per_layer(plan) == saved_bytes_per_layer(replace(plan, compiled=True))


def test_a_card_tells_the_age() -> None:
    """Blackwell runs on no torchtitan before 0.1, so a job that states no version compiles its loss: 178 GiB where the first age came to
    254, and the console printed 174.5."""
    assert profile_name("torchtitan", None, "llama", (10, 0)) == "torchtitan 0.1"
    assert profile_name("torchtitan", None, "llama", (9, 0)) == "torchtitan"
    row = next(row for row in rows("published_jobs") if row["id"] == "titan-8b-gb200-bf16")
    assert predict(job_of(row["job"])).reserved_bytes == pytest.approx(number(row, "outcome.peak_bytes"), rel=0.03)


def test_a_block_tells_the_age() -> None:
    """DeepSeek-V3 came with 0.2."""
    assert profile_name("torchtitan", None, "deepseek_v3") == "torchtitan 0.2"


def test_a_tensor_parallel_rank_keeps_gathered_inputs() -> None:
    """Of a selectively checkpointed layer a share of everything stays but of w2's product, which is whole before its reduce-scatter; both
    reduce-scatters are on the list as well."""
    changes = TITAN | {"parallelism.tensor": 2, "parallelism.world_size": 4, "checkpointing.mode": "selective", "batch.sequence_length": 64}
    few, more = (held(changes | {"model.transformer.layers": n}) for n in (8, 9))
    d, tokens = a_plan(changes).architecture.dims, 2 * 64
    share = tokens * 2 * (d["h"] + 2 * d["h"] + 2 * d["q"] + d["kv"] + d["f"]) // 2  # input, two reduce-scatters, wq, attention, wv, w1
    assert more - few == share + tokens * 2 * d["h"] + 4 * d["a"] // 2 * tokens + ROUNDED_STATE


def test_tensor_parallelism_is_sequence_parallelism() -> None:
    """apply_tp has no other: a job that does not say is taken so, and the answer names it."""
    job = a_job(TITAN | {"parallelism.tensor": 2})
    assert any(note.startswith("parallelism.sequence_parallel: true") for note in predict(job).assumptions)
    assert not predict(job).undecided


def test_compiled_tensor_parallel_layers_are_left_open() -> None:
    """Their rows hold the sizes of one rank alone."""
    said = predict(a_job(TITAN | {"parallelism.tensor": 2, "framework.compile": True, "checkpointing.mode": "full"})).undecided
    assert any("tensor parallel" in note for note in said)


@pytest.mark.parametrize("name", ["titan-q3-8b-gb200-bf16", "titan-q3-8b-gb200-mxfp8"])
def test_a_compiled_qwen3_is_met(name: str) -> None:
    """Its own attention and positions under a compiled layer and loss: to 3 %, where Hugging Face's kernels came to three times as much.
    The source states no checkpointing; torchtitan's default is taken."""
    row = next(row for row in rows("published_jobs") if row["id"] == name)
    answer = predict(job_of(row["job"]))
    assert answer.undecided == ()
    assert answer.reserved_bytes == pytest.approx(number(row, "outcome.peak_bytes"), rel=0.03)


def test_what_a_selective_checkpoint_keeps_of_qwen3() -> None:
    """The list is Llama's: wq, wv, w1, w2, the attention's output, the block's input."""
    changes = TITAN | {"checkpointing.mode": "selective"}
    plans = [a_plan(changes, model=a_transformer("qwen3", layers=n)) for n in (8, 9)]
    few, more = (first_walk(plan).held_per_micro_batch for plan in plans)
    d, tokens = plans[0].architecture.dims, 2 * 32
    assert more - few == tokens * 2 * (2 * d["h"] + 2 * d["q"] + d["kv"] + d["f"]) + 4 * d["a"] * tokens + ROUNDED_STATE


@pytest.mark.parametrize("mode", ["full", "selective"])
@pytest.mark.parametrize("block", ["llama", "qwen3"])
def test_a_compiled_layer_needs_no_more_than_an_eager_one(mode: str, block: str) -> None:
    """Fused kernels leave fewer temporaries, and the backward graph keeps what it reads."""
    changes = TITAN | {"checkpointing.mode": mode, "framework.version": "0.2.1", "batch.sequence_length": 256}
    compiled, eager = (predict(a_job(changes | {"framework.compile": value}, model=a_transformer(block))) for value in (True, False))
    assert compiled.allocated_bytes <= eager.allocated_bytes
    assert compiled.parameters == eager.parameters


@pytest.mark.parametrize(("recipe", "decided"), [("current", True), ("mxfp8", False), ("nvfp4", False)])
def test_only_scales_of_whole_tensors_are_counted(recipe: str, decided: bool) -> None:
    """torchao gathers those weights in 8 bits and keeps operands in 16; another recipe is UNDECIDED, and gathered as it is."""
    job = with_changes(job_of_row(ROWS["titan-8b-fsdp8-fp8"]), [("precision.fp8.recipe", recipe)])
    plan = a_plan({"precision.fp8.recipe": recipe, "precision.compute": "float8", "framework.name": "torchtitan"})
    assert any(note.startswith("precision") for note in predict(job).undecided) != decided
    assert plan.float8_gather == decided


def test_a_budget_of_nothing_is_a_checkpoint() -> None:
    """The partitioner then keeps a compiled layer's inputs alone; a budget in between is UNDECIDED."""
    row = ROWS["titan-8b-cp1-s32768"]

    def with_budget(budget: float) -> Prediction:
        return predict(with_changes(job_of_row(row), [("checkpointing.mode", "memory-budget"), ("checkpointing.budget", budget)]))

    full = predict(job_of_row(row))
    assert with_budget(0.0).allocated_bytes == full.allocated_bytes
    assert not any(note.startswith("checkpointing") for note in with_budget(0.0).undecided)
    assert any(note.startswith("checkpointing") for note in with_budget(0.5).undecided)
