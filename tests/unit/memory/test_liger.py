"""Liger's kernels: what each keeps, and what is not counted."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import job_of

from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.memory.profiles.liger import FAMILIES
from peakgate.memory.runtime import MULTIPROCESSORS

TOKENS, LAYERS, H, A, KV, F, V = 4096, 4, 1024, 8, 256, 2816, 32000
ALL = ("rms_norm", "rope", "swiglu", "fused_linear_cross_entropy")
RNG = 24
Fields = dict[str, object]


def answer(kernels: tuple[str, ...], block: str = "llama", framework: str = "huggingface", **fields: object) -> Prediction:
    """The prediction for a small model of a block with these fused kernels."""
    heads: Fields = {"heads": A, "kv_heads": KV // 128, "head_dim": H // A}
    sizes: Fields = {"layers": LAYERS, "hidden_size": H, "ffn_hidden_size": F, "vocab_size": V, **heads}
    experts: Fields = {"experts": 4, "experts_per_token": 2} if block in ("mixtral", "qwen3_moe") else {}
    job: Fields = {
        "model": {"transformer": {"block": block, **sizes, **experts}},
        "batch": {"micro_batch_size": 1, "sequence_length": TOKENS},
        "precision": {"recipe": "bf16"},
        "attention": {"implementation": "sdpa"},
        "framework": {"name": framework, "fused_kernels": list(kernels)},
        "gpu": {"type": "h100-80gb"},
        **fields,
    }
    return predict(job_of(job))


def test_a_layer_keeps_what_the_kernels_read() -> None:
    """Two norms with one number a row, q k v and the output of attention, gate, up and their product: nothing else."""
    norms = 4 * 2 * H + 2 * 4
    attention = 2 * (H + 2 * KV + H) + 4 * A
    assert answer(ALL).saved_activation_bytes_per_layer == TOKENS * (norms + attention + 3 * 2 * F) + RNG


def test_each_kernel_saves_what_it_replaces() -> None:
    """The norm's fp32 copies and its normalised input; of the gated part the activation; a rotation keeps nothing in either form."""

    def kept(*kernels: str) -> float:
        return answer(kernels).saved_activation_bytes_per_layer / TOKENS

    assert kept() - kept("rms_norm") == 2 * (4 * H + 4 + 2 * H - 2 * H - 4)
    assert kept() - kept("swiglu") == 2 * F
    assert kept() == kept("rope")


def test_the_fused_head_makes_both_gradients_in_forward() -> None:
    """Two chunks of logits, or the gradient of the head with an fp32 copy of one chunk's product: never all logits."""
    seen = answer(("fused_linear_cross_entropy",))
    assert answer(("cross_entropy",)).allocated_bytes > seen.allocated_bytes
    head = V * H
    logits = next(line.bytes for line in seen.ledger if line.category == "logits")
    assert logits >= 2 * head + 2 * head + 4 * head


def test_the_logits_become_their_gradient() -> None:
    """One fp32 copy where PyTorch keeps log-probabilities and makes two more: 8 bytes a logit less at the turn."""
    plain, fused = answer(()), answer(("cross_entropy",))
    assert plain.live_bytes - fused.live_bytes >= 4 * TOKENS * V


def test_partial_sums_have_a_row_a_multiprocessor() -> None:
    """Every capability that the catalogue's cards have is known, or counted as the largest."""
    assert max(MULTIPROCESSORS.values()) * 4 * 8192 < 7_000_000


@pytest.mark.parametrize("block", sorted(FAMILIES))
def test_fused_kernels_never_need_more(block: str) -> None:
    """All that a model has, against none, is counted and not larger."""
    kernels = tuple(name for name in FAMILIES[block] if name != "cross_entropy")
    fused, plain = answer(kernels, block), answer((), block)
    assert fused.undecided == ()
    assert fused.allocated_bytes < plain.allocated_bytes
    assert fused.parameters == plain.parameters


@pytest.mark.parametrize(
    ("kernels", "block", "framework", "want"),
    [
        (("layer_norm",), "llama", "huggingface", "layer_norm of the block 'llama'"),
        (("swiglu",), "mixtral", "huggingface", "swiglu of the block 'mixtral'"),
        (("rope",), "gemma3", "deepspeed", "rope of the block 'gemma3'"),
        (("swiglu",), "llama", "torchtitan", "swiglu of torchtitan"),
    ],
)
def test_what_is_not_counted_is_undecided(kernels: tuple[str, ...], block: str, framework: str, want: str) -> None:
    """A kernel that a model does not have, or that a framework of its own modules cannot take."""
    assert any(want in note for note in answer(kernels, block, framework).undecided)


def test_what_a_framework_fuses_anyway_changes_nothing() -> None:
    """Megatron-LM's own modules are fused: saying so is no other job."""
    assert answer(("rms_norm", "swiglu"), framework="megatron").allocated_bytes == answer((), framework="megatron").allocated_bytes


def test_a_stated_loss_beside_the_fused_head_is_a_contradiction() -> None:
    """One of the two is not what runs."""
    seen = answer(("fused_linear_cross_entropy",), loss={"implementation": "full"})
    assert any("cannot both be" in note for note in seen.undecided)
