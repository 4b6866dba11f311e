"""torchtune's modules, its loss, its memory options, held against the table of its README."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.bench.accuracy import Json, at, number, rows
from tests.unit.memory.builders import a_job, a_plan, a_transformer, job_of, stages_of

from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Job, Lora
from peakgate.memory.predict import predict
from peakgate.memory.step import walk

FULL = ("packed", "compile", "chunkce", "ac", "optinbwd", "actoff")
ROWS = {str(row["id"]): row for row in rows("published_jobs") if at(row, "job.framework.name") in ("torchtune", "torch")}
QLORA = Lora(rank=4, targets=("all-linear",), base_dtype="nf4", double_quant=False)


def a_torchtune(changes: dict[str, Value] | None = None, *, lora: Lora | None = None) -> Job:
    """The builders' small Llama under torchtune."""
    return a_job({"framework.name": "torchtune", **(changes or {})}, lora=lora)


def live(changes: dict[str, Value] | None = None, *, lora: Lora | None = None) -> int:
    """Its live bytes at the peak."""
    return predict(a_torchtune(changes, lora=lora)).live_bytes


@pytest.mark.parametrize("name", FULL)
def test_six_full_fine_tunes(name: str) -> None:
    """README at 1814feb17: Llama 3.2 3B, two sequences of 4,096 on an A100, option by option: within 0.5 %."""
    row: Json = ROWS[f"tune-32-3b-{name}"]
    answer = predict(job_of(row["job"]))
    assert answer.undecided == ()
    assert answer.allocated_bytes == pytest.approx(number(row, "outcome.peak_bytes"), rel=0.005)


@pytest.mark.parametrize("name", ["tune-856-l3-8b-lora-8k-oom", "nanogpt88-v100-bs32-oom", "nanogpt208-gpt2xl-3090-oom"])
def test_what_ran_out_of_memory_does_not_fit(name: str) -> None:
    """Issues of torchtune (856) and of nanoGPT (88, 208) that print an error of the allocator."""
    answer = predict(job_of(ROWS[name]["job"]))
    assert answer.undecided == ()
    assert answer.required_bytes > number(ROWS[name], "outcome.capacity_bytes")


def test_each_option_needs_less() -> None:
    """The README's order: compile, chunked loss, checkpoints, optimizer in backward, offloaded checkpoints."""
    options: dict[str, Value] = {
        "framework.compile": True,
        "loss.implementation": "chunked",
        "checkpointing.mode": "full",
        "optimizer.in_backward": True,
        "offload.activations": "cpu",
    }
    sizes = [live(dict(list(options.items())[:count])) for count in range(len(options) + 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_recipes_name_the_chunked_loss_from_0_3_on() -> None:
    """recipes/configs: torch.nn.CrossEntropyLoss before, CEWithChunkedOutputLoss after; the answer lists it."""
    for version, want in (("0.2.1", "full"), ("0.3.0", "chunked")):
        assumptions = predict(a_torchtune({"framework.version": version})).assumptions
        assert any(line.startswith(f"loss.implementation: {want}") for line in assumptions)


def test_offloaded_checkpoints_leave_one_layer() -> None:
    """_activation_offloading.py: of L inputs the one of the layer that is being rebuilt is back; all others are on the host."""
    changes: dict[str, Value] = {"checkpointing.mode": "full", "batch.sequence_length": 1024}
    model = a_job(model=a_transformer(layers=8, vocab_size=16)).model
    held = []
    for where in ("none", "cpu"):
        answer = predict(replace(a_torchtune({**changes, "offload.activations": where}), model=model))
        held.append(sum(line.bytes for line in answer.ledger if line.category == "activations"))
    assert held[0] - held[1] == 7 * (2 * 1024 * 64 * 2)


def test_offload_without_checkpoints_is_undecided() -> None:
    """What is offloaded then is every saved tensor, which this version does not count."""
    assert any(line.startswith("offload") for line in predict(a_torchtune({"offload.activations": "cpu"})).undecided)


def test_an_eager_4_bit_weight_is_made_of_int64_indices() -> None:
    """torchao nf4tensor.py get_original_weight: 8 bytes an element of indices for a moment; torch.compile makes it in one kernel."""
    assert live({"framework.compile": True}, lora=QLORA) < live(lora=QLORA)


def test_scales_are_always_quantised() -> None:
    """torchao's NF4Tensor quantises its scales whatever the job says of double quantisation."""
    assert live(lora=QLORA) == live(lora=replace(QLORA, double_quant=True))


def test_padding_needs_no_mask() -> None:
    """modules/attention.py: is_causal without a mask; packed data are told apart by indexed rotary tables, which are kept."""
    packed, padded = (predict(a_torchtune({"batch.packed": packed})).saved_activation_bytes_per_layer for packed in (True, False))
    assert packed - padded == 2 * (2 * 32 * 8 * 4)


def test_a_tied_head_sums_its_chunks_in_place() -> None:
    """The first sum of two gradients of a weight is a new tensor, which takes all later ones: more chunks do not add weights."""
    model = a_job(model=a_transformer(vocab_size=50_000, tied_embeddings=True)).model
    job = with_changes(replace(a_torchtune({"loss.implementation": "chunked"}), model=model), [("batch.sequence_length", 8)])
    weight = 50_000 * 64 * 2
    answer = predict(job)
    resident = sum(line.bytes for line in answer.ledger if line.category in ("parameters", "optimizer_states"))
    assert 3 * weight < answer.live_bytes - resident < 4 * weight


def test_a_plain_loop_keeps_its_logits() -> None:
    """nanoGPT train.py: `logits, loss = model(X, Y)`; nn.GELU is one kernel that keeps its input."""
    model = a_job(model=a_transformer("gpt2", max_positions=128)).model
    plain, transformers = (
        predict(replace(a_job({"framework.name": name}), model=model)).saved_activation_bytes_per_layer for name in ("torch", "huggingface")
    )
    assert plain < transformers


@pytest.mark.parametrize("framework", ["torchtune", "litgpt"])
def test_what_a_chunked_loss_makes_is_let_go(framework: str) -> None:
    """The losses of chunks and their sums have no name when the step is done: every allocation but a gradient is freed."""
    plan = a_plan({"framework.name": framework, "loss.implementation": "chunked", "batch.sequence_length": 300})
    (stage,) = stages_of(plan)
    alive: dict[int, int] = {}
    for event, nbytes in walk(plan, stage, record=True).events:
        alive[event] = alive.get(event, 0) + nbytes
    left = [nbytes for nbytes in alive.values() if nbytes]
    assert left
    assert min(left) == 64 * 2
