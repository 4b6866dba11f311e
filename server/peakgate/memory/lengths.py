"""How long the sequences of a job are: tokens, patches of an image or a grid, frames of sound, and the decoder's tokens."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.architecture import Architecture
from peakgate.memory.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of the first stack and of the decoder behind an encoder; edges of an image and of its patches in pixels."""

    sequence: int
    target: int = 0
    image: int = 0
    patch: int = 0


def lengths_of(job: Job, architecture: Architecture) -> Lengths:
    """What the batch states, else what the model itself is built for; `sequence` is 0 when neither says it."""
    batch, dims = job.batch, architecture.dims
    if "vision_h" in dims:  # a tower of pictures beside one of text, whose length is the model's own when it is not stated
        image, patch = batch.image_size or dims["image"], batch.patch_size or dims["patch"]
        text = batch.target_length or batch.sequence_length or architecture.positions
        return Lengths(sequence=patches(image, patch), target=text, image=image, patch=patch)
    if "image" in dims:
        image, patch = batch.image_size or dims["image"], batch.patch_size or dims["patch"]
        return Lengths(sequence=sequence_of(job) or patches(image, patch), image=image, patch=patch)
    if not architecture.encoder:
        return Lengths(sequence=sequence_of(job))
    # transformers models/whisper/modeling_whisper.py: the encoder takes max_source_positions frames, no more and no fewer
    sequence = dims.get("sources") or sequence_of(job)
    return Lengths(sequence=sequence, target=batch.target_length or sequence_of(job) or sequence)


def patches(image: int, patch: int) -> int:
    """Patches of a square image and one class token (models/vit/modeling_vit.py: ViTEmbeddings)."""
    return (image // patch) ** 2 + 1


def sequence_of(job: Job) -> int:
    """Tokens of one sequence; of an image the patches of its two axes and one class token. 0 when neither is stated.

    An example of a plain network is one row of its own shape.
    """
    batch = job.batch
    if job.model.operations is not None:
        return 1
    longest = batch.sequence_lengths.max if batch.sequence_lengths else None
    if longest:  # of padded or truncated data the longest sequence decides
        return min(longest, batch.sequence_length or longest)
    if batch.sequence_length:
        return batch.sequence_length
    if batch.image_size and batch.patch_size:
        return patches(batch.image_size, batch.patch_size)
    if batch.grid and len(batch.grid) == len(batch.patch):
        tokens = 1
        for points, edge in zip(batch.grid, batch.patch, strict=True):
            tokens *= -(-points // edge)
        return tokens
    return 0
