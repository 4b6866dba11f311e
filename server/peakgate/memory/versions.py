"""What a framework's version changes in the step."""

from __future__ import annotations


def version_of(text: str | None) -> tuple[int, ...]:
    """Leading numbers of a version; empty when unknown."""
    numbers = []
    for part in (text or "").split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def builds_mask(framework: str, version: str | None) -> bool:
    """transformers 4.53 to 4.57 build a causal mask although none is passed (masking_utils.py: find_packed_sequence_indices)."""
    return framework == "huggingface" and (4, 53) <= version_of(version) < (5,)


def repeats_heads(framework: str, version: str | None) -> bool:
    """transformers before 4.54 copy keys and values to every head in sdpa (integrations/sdpa_attention.py, no enable_gqa)."""
    return framework == "huggingface" and () < version_of(version) < (4, 54)


def saves_on_gpu(framework: str, version: str | None) -> bool:
    """transformers before 4.30 clone a full state dict of FSDP on the GPU (trainer.py, save_model: self.model.state_dict())."""
    return framework == "huggingface" and () < version_of(version) < (4, 30)


def asks_at_input(framework: str, version: str | None) -> bool:
    """transformers 5 calls enable_input_require_grads for every checkpointed model (modeling_utils.py), 4 only for one with adapters."""
    return framework in ("huggingface", "deepspeed") and (not version_of(version) or version_of(version) >= (5,))
