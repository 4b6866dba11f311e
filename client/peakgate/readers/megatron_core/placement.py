"""Degrees of parallelism, stages and batches: M _add_distributed_args, validate_args; megatron/core/transformer/transformer_block.py."""

from __future__ import annotations

import math

from peakgate.readers.convert import positive
from peakgate.readers.launch import Launch
from peakgate.readers.megatron_core.model import T5, layers_of
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.patterns import stages
from peakgate.readers.megatron_core.routing import experts_of
from peakgate.readers.place import Stated

SIZES = {
    "tensor_model_parallel_size": "parallelism.tensor",
    "pipeline_model_parallel_size": "parallelism.pipeline",
    "context_parallel_size": "parallelism.context",
    "expert_model_parallel_size": "parallelism.expert",
    "micro_batch_size": "batch.micro_batch_size",
    "eval_micro_batch_size": "evaluate.micro_batch_size",
}
DEGREES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "ds_sequence_parallel_size")

CONTEXT_TYPES = {"p2p": "ring", "a2a": "ulysses", "allgather": "all-gather", "all_gather": "all-gather"}
"""M --cp-comm-type."""


def world_of(launch: Launch) -> int | None:
    """GPUs in all, as launchers and schedulers say."""
    for path in ("parallelism.world_size", "gpu.count"):
        value = launch.around.get(path)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    stated = launch.environment("WORLD_SIZE")
    try:
        return positive(stated) if stated is not None else None
    except ValueError:
        return None


def read_placement(options: Options, kind: str, world: int | None) -> None:
    """States degrees, stages and batches."""
    options.sizes(SIZES)
    if options.size("tensor_model_parallel_size", 1) > 1:  # M validate_args switches it off without tensor parallelism
        options.state("parallelism.sequence_parallel", options.on("sequence_parallel") or None, "sequence_parallel")
    world = world or _smallest_world(options)
    _context(options)
    _virtual(options, kind)
    _stage_layers(options, kind)
    _expert_tensor(options, world)
    _lengths(options, kind)
    _accumulation(options, world)


def model_degree(options: Options) -> int:
    """Ranks that hold one copy of the model: tensor × pipeline × context (and DeepSpeed's sequence parallel) degrees."""
    return math.prod(options.size(name, 1) for name in DEGREES)


def data_degree(options: Options, world: int | None) -> int:
    """Data parallel ranks; 1 where the world is not known, as the server takes the smallest world."""
    return max(1, (world or 0) // model_degree(options))


def _smallest_world(options: Options) -> int | None:
    """Ranks that the experts need beside the model's own degrees, where nobody says how many there are.

    Megatron-LM megatron/core/parallel_state.py: the expert degree divides data × context × tensor.
    """
    degree, expert = model_degree(options), options.size("expert_model_parallel_size", 1)
    reach = degree // options.size("pipeline_model_parallel_size", 1)
    if expert == 1 or reach % expert == 0:
        return None
    world = degree * (expert // math.gcd(reach, expert))
    options.reading.default("parallelism.world_size", world, "peakgate: the smallest world that the degrees allow")
    return world


def _context(options: Options) -> None:
    if options.size("context_parallel_size", 1) == 1:
        return
    kinds = options.words("cp_comm_type")
    if len(set(kinds)) == 1 and kinds[0] in CONTEXT_TYPES:
        options.state("parallelism.context_type", CONTEXT_TYPES[kinds[0]], "cp_comm_type")
    elif kinds:
        options.cannot_say("context parallelism of several kinds", "cp_comm_type")
    if options("hierarchical_context_parallel_sizes") or options.on("hybrid_context_parallel"):
        options.cannot_say("hierarchical context parallelism", "hierarchical_context_parallel_sizes", "hybrid_context_parallel")


def _split(options: Options, kind: str) -> int:
    """What the pipeline divides: layers, and the embedding and the loss where they count as one."""
    layers = layers_of(options) if kind != T5 else None
    extra = options.on("account_for_embedding_in_pipeline_split") + options.on("account_for_loss_in_pipeline_split")
    return (layers or 0) + extra if layers else 0


def _virtual(options: Options, kind: str) -> None:
    """Chunks a stage: M validate_args (virtual_pipeline_model_parallel_size)."""
    pipeline = options.size("pipeline_model_parallel_size", 1)
    direct = ("num_virtual_stages_per_pipeline_rank", "virtual_pipeline_model_parallel_size")
    for name in direct:
        if (chunks := options.whole(name)) is not None and chunks > 1:
            options.state("parallelism.virtual_pipeline", chunks, name)
    name = "num_layers_per_virtual_pipeline_stage"
    per_chunk, split = options.whole(name), _split(options, kind)
    if per_chunk and split and pipeline > 1:
        chunks, rest = divmod(split // pipeline, per_chunk)
        if split % pipeline or rest:
            options.reading.warnings.append(
                f"{options.place(name)}: {per_chunk} does not divide the layers of a stage ({split} / {pipeline})"
            )
        elif chunks > 1:
            options.state("parallelism.virtual_pipeline", chunks, name)
    layout = layout_of(options)
    if len(layout) > pipeline and len(layout) % pipeline == 0:
        options.state("parallelism.virtual_pipeline", len(layout) // pipeline, "pipeline_model_parallel_layout")


def layout_of(options: Options) -> list[str]:
    """The stages and chunks of --pipeline-model-parallel-layout; empty without one."""
    stated = options("pipeline_model_parallel_layout")
    if stated is None:
        return []
    try:
        return stages(str(stated.value))
    except ValueError as error:
        options.reading.warnings.append(f"pipeline_model_parallel_layout: {stated.text[:80]!r} cannot be read ({stated.place}): {error}")
        return []


def _stage_layers(options: Options, kind: str) -> None:
    """M get_num_layers_to_build: a layout; stages that are named; or the embedding and the loss as layers of the outer stages."""
    pipeline, layers = options.size("pipeline_model_parallel_size", 1), layers_of(options)
    if pipeline == 1 or pipeline > 4096 or kind == T5:
        return
    found, name = _stages_of_layout(options, pipeline), "pipeline_model_parallel_layout"
    if found is None and layers:
        first, last = options.count("decoder_first_pipeline_num_layers"), options.count("decoder_last_pipeline_num_layers")
        if first is not None or last is not None:
            found = _outer(layers, pipeline, first, last)
            name = "decoder_first_pipeline_num_layers" if first is not None else "decoder_last_pipeline_num_layers"
            if found is None:
                options.reading.warnings.append(
                    f"{options.place(name)}: what is left of {layers} layers does not divide among the other stages"
                )
        elif _split(options, kind) > layers:
            found, name = _with_ends(options, layers, pipeline)
    if found is not None and len(set(found)) > 1:
        options.state("parallelism.stage_layers", list(found), name)


def _stages_of_layout(options: Options, pipeline: int) -> list[int] | None:
    layout = layout_of(options)
    if not layout or len(layout) % pipeline:
        return None
    counts = [stage.count("t") for stage in layout]
    return [sum(counts[rank::pipeline]) for rank in range(pipeline)]


def _outer(layers: int, pipeline: int, first: int | None, last: int | None) -> list[int] | None:
    others = pipeline - (first is not None) - (last is not None)
    rest = layers - (first or 0) - (last or 0)
    if rest < 0 or (others and rest % others) or (not others and rest):
        return None
    middle = [rest // others] * others if others else []
    return [*([first] if first is not None else []), *middle, *([last] if last is not None else [])]


def _with_ends(options: Options, layers: int, pipeline: int) -> tuple[list[int] | None, str]:
    embedding, loss = options.on("account_for_embedding_in_pipeline_split"), options.on("account_for_loss_in_pipeline_split")
    name = "account_for_embedding_in_pipeline_split" if embedding else "account_for_loss_in_pipeline_split"
    each, rest = divmod(layers + embedding + loss, pipeline)
    if rest or not each:
        return None, name
    return [each - embedding, *([each] * (pipeline - 2)), each - loss], name


def _expert_tensor(options: Options, world: int | None) -> None:
    """The memory model splits experts as all else where the ranks reach, and keeps them whole where not; another degree has no words."""
    tensor, stated = options.size("tensor_model_parallel_size", 1), options.whole("expert_tensor_parallel_size")
    expert = options.size("expert_model_parallel_size", 1)
    if stated is None or stated == tensor or not (experts_of(options) or expert > 1):
        return
    ranks = tensor * expert * options.size("pipeline_model_parallel_size", 1)
    assumed = tensor if (world or model_degree(options)) % ranks == 0 else 1
    if stated != assumed:
        options.cannot_say("experts split by another tensor parallel degree than all else", "expert_tensor_parallel_size")


def _lengths(options: Options, kind: str) -> None:
    name = "seq_length" if options("seq_length") else "encoder_seq_length"
    options.state("batch.sequence_length", options.whole(name), name)
    if kind == T5:
        options.state("batch.target_length", options.whole("decoder_seq_length"), "decoder_seq_length")


def _accumulation(options: Options, world: int | None) -> None:
    """Micro-batches a step: M validate_args (the global batch is micro-batch × data degree when it is not stated)."""
    total, name = options.whole("global_batch_size"), "global_batch_size"
    schedule = options("step_batch_size_schedule")
    if schedule is not None:  # "0:384 200B:768": the last one is the largest, and stays
        parts = [str(each) for each in schedule.value] if isinstance(schedule.value, list) else schedule.text[:1000].split()
        last = parts[-1:] or [""]
        final = Stated(last[0].rpartition(":")[2].strip("'\""), schedule.place)
        try:
            total, name = positive(final), "step_batch_size_schedule"
        except ValueError:
            options.reading.warnings.append(f"step_batch_size_schedule: {schedule.text[:80]!r} cannot be read ({schedule.place})")
    micro = options.whole("micro_batch_size")
    if total is None or micro is None or any(options(degree) is not None and options.count(degree) is None for degree in DEGREES):
        return  # a degree that cannot be read leaves the data degree open
    step = micro * data_degree(options, world)
    if total % step:
        other = options.place("micro_batch_size")
        options.reading.warnings.append(
            f"{options.place(name)}: a global batch of {total} is no multiple of micro-batch × data degree = {step} ({other})"
        )
    options.state("batch.gradient_accumulation_steps", max(1, total // step), name)
