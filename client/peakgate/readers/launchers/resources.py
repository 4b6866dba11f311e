"""GPUs, nodes and processes of a launch, as schedulers and launchers say them, and the fields that follow."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.readers.place import Place, Stated
from peakgate.readers.reading import Reading

COUNT, NODE_GPUS, WORLD, TYPE, HOST = "gpu.count", "node.gpus", "parallelism.world_size", "gpu.type", "node.host_memory_bytes"
LARGEST = 1_000_000
"""Nodes or GPUs; more is a slip of the keyboard."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number with where it is said."""

    value: int
    place: Place


def count_of(stated: Stated | None) -> Count | None:
    """A stated number above 0; None for anything else (`auto`, a variable of the run)."""
    text = stated.text.strip() if stated is not None else ""
    if stated is None or not text.isascii() or not text.isdigit() or len(text) > 7 or not 0 < int(text) <= LARGEST:
        return None
    return Count(int(text), stated.place)


def times(one: Count | None, other: Count | None) -> Count | None:
    """The product, at the place of the first."""
    return Count(one.value * other.value, one.place) if one is not None and other is not None else None


def shared(total: Count | None, by: Count | None) -> Count | None:
    """A number in equal parts; None when it does not go evenly."""
    if total is None or by is None or total.value % by.value:
        return None
    return Count(total.value // by.value, total.place)


@dataclass(slots=True)
class Resources:
    """Asked for of a scheduler: `nodes`, `gpus` in all, `gpus_per_node`, `tasks`; seen: `visible` (CUDA_VISIBLE_DEVICES); started:
    `processes` in all or a node, on `process_nodes`. `every_gpu`: the launcher takes all that it sees."""

    nodes: Count | None = None
    gpus: Count | None = None
    gpus_per_node: Count | None = None
    tasks: Count | None = None
    tasks_per_node: Count | None = None
    visible: Count | None = None
    processes: Count | None = None
    processes_per_node: Count | None = None
    process_nodes: Count | None = None
    every_gpu: Place | None = None
    gpu_type: Stated | None = None
    host_memory_bytes: Count | None = None
    cpus_per_task: Count | None = None
    stepped: bool = False
    """Whether srun starts the tasks: without it there is one process, whatever was asked for."""

    def copy(self) -> Resources:
        """The same."""
        return replace(self)

    def all_nodes(self) -> Count | None:
        """Nodes, where they are said or follow."""
        return self.nodes or _ratio(self.gpus, self.gpus_per_node) or _ratio(self.tasks, self.tasks_per_node)

    def of_a_node(self) -> Count | None:
        """GPUs of a node that the scheduler gives."""
        return self.gpus_per_node or shared(self.gpus, self.all_nodes() or _one(self.gpus))

    def world(self) -> Count | None:
        """Processes in all, as the innermost launcher starts them, else the scheduler's tasks."""
        if self.processes is not None:
            return self.processes
        one_node = self.processes_per_node or self.every_gpu
        if one_node is not None:
            nodes = self.process_nodes or self.all_nodes()
            each = self.processes_per_node or (self.visible or self.of_a_node() if self.every_gpu else None)
            return times(each, nodes or _one(each))
        return self._tasks() if self.stepped else None

    def _tasks(self) -> Count | None:
        """Tasks as processes; one task on a node with several GPUs starts the others itself, or uses one of them: nobody says which."""
        nodes, each = self.all_nodes(), self.of_a_node()
        tasks = self.tasks or times(self.tasks_per_node, nodes or _one(self.tasks_per_node))
        alone = tasks is not None and tasks.value <= (nodes.value if nodes is not None else 1)
        return None if alone and (each is None or each.value > 1) else tasks


def _ratio(total: Count | None, each: Count | None) -> Count | None:
    return shared(total, each) if total is not None and each is not None and each.value <= total.value else None


def _one(near: Count | None) -> Count | None:
    return Count(1, near.place) if near is not None else None


def resources_around(around: Reading) -> Resources:
    """What a manifest has said already."""
    count, node = (_said(around, path) for path in (COUNT, NODE_GPUS))
    return Resources(gpus=count, gpus_per_node=node, nodes=_ratio(count, node))


def _said(around: Reading, path: str) -> Count | None:
    stated = around.fields.get(path)
    return count_of(stated) if stated is not None else None


def state_resources(resources: Resources, reading: Reading) -> None:
    """The fields that follow; what contradicts is a warning with both places."""
    world, nodes = resources.world(), resources.all_nodes()
    scheduled = resources.of_a_node()
    each = scheduled or resources.visible
    if resources.process_nodes is not None and nodes is not None and resources.process_nodes.value != nodes.value:
        _contradict("nodes", nodes, resources.process_nodes, reading)
    count = resources.gpus or times(each, nodes or resources.process_nodes or _one(each))
    if count is not None and world is not None and world.value < count.value:
        _state_used(count, world, reading)
    elif count is not None:
        _state(COUNT, count, reading)
    if world is not None:
        if count is None or world.value > count.value:
            _state(COUNT, world, reading)
        _state(WORLD, world, reading)
    if each is None and world is not None:
        each = resources.processes_per_node or shared(world, resources.process_nodes or nodes or _one(world))
    elif each is not None and resources.processes_per_node is not None and resources.processes_per_node.value > each.value:
        each = resources.processes_per_node
    if each is not None:
        _state(NODE_GPUS, each, reading, quiet=True)
    if resources.gpu_type is not None:
        reading.state(TYPE, resources.gpu_type.text, resources.gpu_type.place)
    if resources.host_memory_bytes is not None:
        _state(HOST, resources.host_memory_bytes, reading)


def _state(path: str, count: Count, reading: Reading, *, quiet: bool = False) -> None:
    if quiet:  # the same contradiction is told by the count of all
        reading.fields.pop(path, None)
    reading.state(path, count.value, count.place)


def _state_used(asked: Count, world: Count, reading: Reading) -> None:
    """A job has the GPUs that its processes use: what else an allocation holds stands idle, or serves another command of the script."""
    reading.fields.pop(COUNT, None)
    _state(COUNT, world, reading)
    reading.warnings.append(
        f"{COUNT}: {asked.value} are asked for ({asked.place}), and {world.value} processes use one each ({world.place}); the job is "
        "judged on those"
    )


def _contradict(what: str, one: Count, other: Count, reading: Reading) -> None:
    reading.warnings.append(f"{what}: {one.value} ({one.place}) and {other.value} ({other.place}) contradict; the last is taken")
