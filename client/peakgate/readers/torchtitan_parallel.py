"""torchtitan's degrees, and what they make of batch, precision and loss.

Sources: torchtitan distributed/parallel_dims.py (a shard degree of -1 is what remains), distributed/utils.py maybe_enable_amp, train.py
(gradient accumulation = global_batch_size / (local_batch_size × data degree)).
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.readers import convert
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.state import KNOWN_SCRIPTS
from peakgate.readers.place import DEFAULT, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.torchtitan_pipeline import pipeline_of
from peakgate.readers.torchtitan_settings import switched, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """`shard` and `world` are 0 where they are not known."""

    replicate: int
    shard: int
    tensor: int
    pipeline: int
    context: int
    world: int

    @property
    def data(self) -> int:
        """Groups of ranks with different sequences; 0: not known."""
        return self.replicate * self.shard


def read(settings: Settings, launch: Launch, reading: Reading) -> None:
    """Degrees, batch, precision, loss and pipeline."""
    world = _world(launch, reading)
    degrees = _degrees(settings, world, reading)
    _sharding(settings, degrees, reading)
    _batch(settings, degrees, reading)
    _precision(settings, degrees, reading)
    _loss(settings, degrees, reading)
    if degrees.pipeline > 1:
        pipeline_of(settings, degrees.pipeline, reading)
    _experts(settings, reading)


def _world(launch: Launch, reading: Reading) -> int:
    """GPUs in all: what launchers say, NGPU of run_train.sh, or the product of the degrees."""
    for path in ("parallelism.world_size", "gpu.count"):
        known = launch.around.get(path)
        if isinstance(known, int) and known > 0:
            return known
    if launch.program in KNOWN_SCRIPTS:
        ngpu = launch.environment("NGPU") or Stated(8, Place(kind=DEFAULT, key=f"torchtitan's {launch.program}: NGPU"))
        count = whole(Settings({"NGPU": ngpu}), "NGPU", 8, reading)
        if count > 0:
            for path in ("parallelism.world_size", "gpu.count", "node.gpus"):
                reading.state(path, count, ngpu.place)
            return count
    return 0


def _degrees(settings: Settings, world: int, reading: Reading) -> Degrees:
    names = ("data_parallel_replicate", "tensor_parallel", "pipeline_parallel", "context_parallel")
    replicate, tensor, pipeline, context = (max(whole(settings, f"parallelism.{name}_degree", 1, reading), 1) for name in names)
    shard = whole(settings, "parallelism.data_parallel_shard_degree", -1, reading)
    fixed = replicate * tensor * pipeline * context
    if shard > 0 and world == 0:
        world = shard * fixed
        if fixed * shard < convert.LARGEST:
            stated = settings("parallelism.data_parallel_shard_degree")
            reading.default("parallelism.world_size", world, f"torchtitan: the product of its degrees ({stated.place if stated else ''})")
    elif shard > 0 and world != shard * fixed:
        reading.warnings.append(f"parallelism: the degrees come to {shard * fixed} GPUs and the launch to {world}: torchtitan refuses that")
    elif shard <= 0:
        shard = world // fixed if world and world % fixed == 0 else 0
        if world and not shard and world % (fixed // replicate) == 0:  # of the other degrees every reading is warned (degrees.py)
            reading.warnings.append(
                f"parallelism: the degrees come to multiples of {fixed} GPUs and the launch to {world}: torchtitan refuses that"
            )
    for name, field in (("tensor_parallel", "tensor"), ("pipeline_parallel", "pipeline"), ("context_parallel", "context")):
        stated = settings(f"parallelism.{name}_degree")
        if stated is not None:
            reading.state(f"parallelism.{field}", max(whole(settings, f"parallelism.{name}_degree", 1, Reading()), 1), stated.place)
    return Degrees(replicate=replicate, shard=shard, tensor=tensor, pipeline=pipeline, context=context, world=world)


def _sharding(settings: Settings, degrees: Degrees, reading: Reading) -> None:
    """FSDP shards over the data and the context degree (parallel_dims.py: dp_shard_cp)."""
    stated = settings.first("parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree")
    if settings("training.data_parallel_type") is not None:  # 2024: fsdp or ddp
        kind = settings("training.data_parallel_type")
        if kind is not None and kind.text.lower() == "ddp":
            reading.state("parallelism.sharding", "ddp", kind.place)
            return
    shards = degrees.shard * degrees.context
    explicit = settings("parallelism.data_parallel_shard_degree")
    alone, copied = ("none", "ddp") if shards == 1 else ("fsdp", "hsdp")
    word = copied if degrees.replicate > 1 else alone
    place = (settings("parallelism.data_parallel_replicate_degree") if degrees.replicate > 1 else None) or explicit or stated
    if place is None:
        if shards:
            ranks = "one data parallel rank" if shards == 1 else "several data parallel ranks"
            reading.default("parallelism.sharding", word, f"torchtitan on {ranks}")
        return
    reading.state("parallelism.sharding", word, place.place)
    if shards > 1 and (word == "hsdp" or whole(settings, "parallelism.data_parallel_shard_degree", -1, Reading()) > 0):
        reading.state("parallelism.shard_degree", shards, (explicit or place).place)


def _batch(settings: Settings, degrees: Degrees, reading: Reading) -> None:
    length, local = settings("training.seq_len"), settings("training.local_batch_size")
    tokens = settings("training.num_tokens_per_microbatch_per_dp_rank")
    sequence = whole(settings, "training.seq_len", 0, reading)
    size, parts = whole(settings, "training.local_batch_size", 0, reading), 1
    place = local.place if local else None
    if tokens is not None and sequence > 0:
        sequence, size = _of_tokens(whole(settings, "training.num_tokens_per_microbatch_per_dp_rank", 0, reading), sequence)
        place = tokens.place
        parts = whole(settings, "parallelism.num_pp_microbatches", 1, reading) if degrees.pipeline > 1 else 1
    elif degrees.pipeline > 1 and size > 0:
        parts = size // _of_pipeline(settings, size, degrees, reading)
        size //= max(parts, 1)
    if length is not None and sequence > 0:
        reading.state("batch.sequence_length", sequence, length.place)
    if place is not None and size > 0:
        reading.state("batch.micro_batch_size", size, place)
        _accumulation(settings, degrees, size, max(parts, 1), sequence, reading, place)


def _of_tokens(tokens: int, length: int) -> tuple[int, int]:
    """Length and number of the sequences of a micro-batch that is counted in tokens; its batch dimension is folded away."""
    return (length, tokens // length) if tokens % length == 0 else (tokens, 1)


def _of_pipeline(settings: Settings, size: int, degrees: Degrees, reading: Reading) -> int:
    """Sequences of one micro-batch; before April 2025 their number was given, the degree if nothing was."""
    older = settings("parallelism.pipeline_parallel_microbatches")
    if older is not None:
        return max(size // max(whole(settings, "parallelism.pipeline_parallel_microbatches", degrees.pipeline, reading), 1), 1)
    return min(max(whole(settings, "parallelism.pipeline_parallel_microbatch_size", 1, reading), 1), size)


def _accumulation(settings: Settings, degrees: Degrees, size: int, parts: int, length: int, reading: Reading, place: Place) -> None:
    steps, whose = 1, None
    for key, each in (("training.global_batch_size", 1), ("training.num_tokens_per_train_step", length)):
        wanted = whole(settings, key, -1, reading)
        stated = settings(key)
        if stated is None or wanted <= 0:
            continue
        if not degrees.data:
            reading.warnings.append(
                f"batch.gradient_accumulation_steps: {key} needs the number of GPUs, which the launch does not say ({stated.place})"
            )
            continue
        steps, whose = wanted // (size * each * parts * degrees.data), stated
        if steps * size * each * parts * degrees.data != wanted:
            reading.warnings.append(
                f"{key}: {wanted} is no multiple of the sequences of {degrees.data} data parallel ranks ({stated.place})"
            )
    if max(steps, 1) * parts > 1 or whose is not None:
        reading.state("batch.gradient_accumulation_steps", max(steps, 1) * parts, whose.place if whose else place)


def _precision(settings: Settings, degrees: Degrees, reading: Reading) -> None:
    """fully_shard mixes formats itself; without it autocast does, and under tensor or pipeline parallelism nothing does."""
    dtype, mixed = settings("training.dtype"), settings("training.mixed_precision_param")
    if dtype is not None and dtype.text == "bfloat16":
        reading.state("precision.recipe", "bf16", dtype.place)
        return
    if mixed is not None and mixed.text == "float32":
        reading.state("precision.recipe", "fp32", mixed.place)
        return
    if degrees.shard * degrees.context == 1:
        alone = degrees.tensor * degrees.pipeline == 1
        reading.default("precision.recipe", "amp-bf16" if alone else "fp32", "torchtitan without fully_shard")
    elif mixed is not None and mixed.text == "bfloat16":
        reading.state("precision.recipe", "fsdp-bf16", mixed.place)


def _loss(settings: Settings, degrees: Degrees, reading: Reading) -> None:
    """Tensor parallel ranks keep their part of the logits unless that is switched off (loss parallel)."""
    off = switched(settings, "parallelism.disable_loss_parallel")
    on = settings("parallelism.enable_loss_parallel")
    stated = settings("loss.implementation")
    if degrees.tensor > 1 and (stated is None or stated.text == "full"):
        whole_logits = off is not None or (on is not None and switched(settings, "parallelism.enable_loss_parallel") is None)
        if not whole_logits:
            reading.default("loss.implementation", "vocab-parallel", "torchtitan: loss parallel")


def _experts(settings: Settings, reading: Reading) -> None:
    stated = settings("parallelism.expert_tensor_parallel_degree")
    degree = whole(settings, "parallelism.expert_tensor_parallel_degree", 1, reading)
    if stated is not None and degree > 1 and reading.get("model.transformer.experts") is not None:
        reading.cannot_say("experts that are split by tensor parallelism", stated.place)
