"""torchtitan's pipelines: schedules, chunks of a rank, layers of a stage.

Source: torchtitan distributed/pipeline_parallel.py (two stages a rank under schedules of many stages; generate_llm_fqn_per_model_part).
"""

from __future__ import annotations

from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.torchtitan_settings import whole

SCHEDULES = {
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "interleaved1f1b": "interleaved-1f1b",
    "interleaved_1f1b": "interleaved-1f1b",
    "flexible_interleaved_1f1b": "interleaved-1f1b",
    "interleavedzerobubble": "zero-bubble",
}
ONE_STAGE = ("1f1b", "gpipe")


def pipeline_of(settings: Settings, ranks: int, reading: Reading) -> None:
    """States schedule, chunks and layers of a pipeline over so many ranks."""
    stated = settings("parallelism.pipeline_parallel_schedule")
    word = SCHEDULES.get(stated.text.strip().lower()) if stated else "1f1b"
    if stated is not None and word is None:
        reading.cannot_say(f"the pipeline schedule {stated.text[:40]}", stated.place)
        return
    if stated is not None and word is not None:
        reading.state("parallelism.pipeline_schedule", word, stated.place)
    _chunks(settings, ranks, word, stated, reading)
    for key in ("pipeline_parallel_split_points", "module_fqns_per_model_part"):
        if (points := settings(f"parallelism.{key}")) is not None and points.value not in ("", []):
            reading.cannot_say("stages that are split by hand", points.place)


def _chunks(settings: Settings, ranks: int, word: str | None, schedule: Stated | None, reading: Reading) -> None:
    """Stages of a rank, two where nothing says how many layers each has; or the layers of the only one."""
    layers = reading.get("model.transformer.layers")
    weights = [whole(settings, f"parallelism.pipeline_parallel_{end}_stage_less_layers", 1, reading) for end in ("first", "last")]
    each = settings("parallelism.pipeline_parallel_layers_per_stage")
    stages = 1 if word in ONE_STAGE else 2
    if each is not None and isinstance(layers, int):
        size = max(whole(settings, "parallelism.pipeline_parallel_layers_per_stage", 1, reading), 1)
        stages = max(-(-(layers + sum(weights)) // size) // ranks, 1)
    if stages > 1:
        whose = each or schedule
        if whose is not None:
            reading.state("parallelism.virtual_pipeline", stages, whose.place)
    elif isinstance(layers, int) and settings("parallelism.pipeline_parallel_split_points") is None:
        split = split_of(layers, ranks, weights)
        if len(set(split)) > 1 and min(split) > 0:
            reading.default("parallelism.stage_layers", list(split), "torchtitan: a stage with embedding or head has fewer layers")


def split_of(layers: int, stages: int, weights: list[int]) -> list[int]:
    """Layers of each stage; embedding and head count as so many layers."""
    if stages > layers + sum(weights) or stages > 4096:
        return []
    least, more = divmod(layers + sum(weights), stages)
    split = [least + (stage < more) for stage in range(stages)]
    split[0] -= weights[0]
    split[-1] -= weights[1]
    return split
