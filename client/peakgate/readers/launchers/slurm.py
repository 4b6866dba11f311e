"""Slurm's options: of #SBATCH lines, sbatch, salloc and srun (sbatch(1), srun(1); container options of Pyxis)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from peakgate.readers.arguments import Arguments, Word
from peakgate.readers.launchers.flags import named, placed
from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.readers.launchers.resources import Count, Resources, count_of, times
from peakgate.readers.launchers.slurm_options import BARE, SHORT
from peakgate.readers.place import Place, Stated

_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_MEMORY = re.compile(r"(\d{1,15})([kmgt]?)b?$", re.IGNORECASE)
_RESOURCE = re.compile(r"(?:gres[:/])?gpu(?:[:/=]([^:=(\d][^:=(]*|\d+[^:=(\d][^:=(]*))?(?:[:=](\d+))?(?:\(.*\))?$")


def slurm_options(words: Sequence[Word], kind: str) -> tuple[Arguments, list[Word]]:
    """Options in front, and the words behind them; a short one may have its value attached (`-N2`)."""
    found, at = Arguments(), 0
    while at < len(words) and words[at].text.startswith("-") and len(words[at].text) > 1:
        word = words[at]
        at += 1
        key, joined, value = word.text.partition("=")
        if word.text == "--":
            break
        if word.text.startswith("--"):
            name, valued = named(key), not joined and named(key) not in BARE
        else:
            key, name = word.text[:2], SHORT.get(word.text[1], "")
            value, valued = word.text[2:].removeprefix("="), bool(name) and len(word.text) == 2
            if not name:
                continue
        if valued:
            value = words[at].text if at < len(words) else ""
            at += 1
        found.flags.override(name, Stated(value or True, placed(word, key, kind)))
    return found, list(words[at:])


def note_slurm(options: Arguments, resources: Resources, warnings: list[str]) -> None:
    """What options ask for; later ones win over earlier ones."""
    for name, note in _NOTES.items():
        stated = options.flags(name)
        if stated is not None:
            note(stated, resources, warnings)
    _note_constraint(options.flags("constraint"), resources, warnings)
    if resources.gpus_per_node is None and (each := _gpus_of_a_task(options)) is not None:
        resources.gpus_per_node = times(each, resources.tasks_per_node)
        if resources.gpus_per_node is None and resources.tasks is not None:
            resources.gpus = times(each, resources.tasks)
    _note_types_beside(options, resources, warnings)
    _note_shared_memory(options, resources)


def _nodes(stated: Stated, resources: Resources, _: list[str]) -> None:
    """`2`, or `2-4`, of which the least is sure."""
    resources.nodes = count_of(Stated(re.split(r"[-:,]", stated.text)[0], stated.place)) or resources.nodes


def _counted(attribute: str) -> Callable[[Stated, Resources, list[str]], None]:
    def note(stated: Stated, resources: Resources, _: list[str]) -> None:
        setattr(resources, attribute, count_of(stated) or getattr(resources, attribute))

    return note


def _gpus(attribute: str) -> Callable[[Stated, Resources, list[str]], None]:
    """`8`, `a100:8`."""

    def note(stated: Stated, resources: Resources, warnings: list[str]) -> None:
        kind, colon, number = stated.text.rpartition(":")
        count = count_of(Stated(number, stated.place))
        if count is not None:
            resources.gpus = resources.gpus_per_node = None
            setattr(resources, attribute, count)
        if colon:
            note_type(kind, stated.place, resources, warnings)

    return note


def _gres(stated: Stated, resources: Resources, warnings: list[str]) -> None:
    """`gpu:8`, `gpu:a100:8`, `gpu`, several with commas; those of other names are not GPUs."""
    counts, place = [], stated.place
    for one in stated.text.split(",")[:20]:
        match = _RESOURCE.match(one.strip())
        if match is None:
            continue
        counts.append(count_of(Stated(match[2] or "1", place)))
        if match[1]:
            note_type(match[1], place, resources, warnings)
    total = sum(count.value for count in counts if count is not None)
    if total:
        resources.gpus, resources.gpus_per_node = None, Count(total, place)


def note_type(text: str, place: Place, resources: Resources, warnings: list[str]) -> None:
    """A GPU's name on this cluster; one that may mean several, or none, is a warning."""
    names = gpus_named(text)
    if len(names) == 1:
        resources.gpu_type = Stated(names[0], place)
    elif names:
        warnings.append(_either(text, place, names))
        resources.gpu_type = None
    else:
        warnings.append(f"gpu.type: {text} ({place}) is no GPU that is known by this name; state gpu.type")
        resources.gpu_type = None


def _either(text: str, place: Place, names: Sequence[str]) -> str:
    return f"gpu.type: {text} ({place}) may be {' or '.join(names)}; state gpu.type to choose"


def _note_constraint(stated: Stated | None, resources: Resources, warnings: list[str]) -> None:
    """A feature that names one card, or the size of one: `a100&80gb`, `h100`; it settles what `--gres` left open."""
    if stated is None or resources.gpu_type is not None or len(stated.text) > 200:
        return
    names = {names for word in re.split(r"[|,\[\]()]", stated.text) if (names := gpus_named(word.replace("&", "-")))}
    if len(names) != 1:
        return
    found, told = names.pop(), [each for each in warnings if each.startswith("gpu.type:")]
    if len(found) == 1:
        resources.gpu_type = Stated(found[0], stated.place)
        warnings[:] = [each for each in warnings if each not in told]
    elif not told:
        warnings.append(_either(stated.text, stated.place, found))


def _gpus_of_a_task(options: Arguments) -> Count | None:
    stated = options.flags("gpus_per_task")
    if stated is not None:
        return count_of(Stated(stated.text.rpartition(":")[2], stated.place))
    stated = options.flags("tres_per_task")
    match = re.search(r"gres[:/]gpu(?::[^:=,\d][^:=,]*)?[:=](\d+)", stated.text) if stated is not None else None
    return count_of(Stated(match[1], stated.place)) if match and stated is not None else None


def _note_types_beside(options: Arguments, resources: Resources, warnings: list[str]) -> None:
    """The card that is named where GPUs are counted by task or by socket: `--gpus-per-task=a100:1`, `gres/gpu:a100=1`."""
    for name, pattern in _TYPED.items():
        stated = options.flags(name)
        match = pattern.search(stated.text) if stated is not None and resources.gpu_type is None else None
        if match is not None and stated is not None:
            note_type(match[1], stated.place, resources, warnings)


_TYPED = {
    "gpus_per_task": re.compile(r"^(.*[^:\d].*):\d+$"),
    "gpus_per_socket": re.compile(r"^(.*[^:\d].*):\d+$"),
    "tres_per_task": re.compile(r"gres[:/]gpu:([^:=,\d][^:=,]*)"),
}


def _memory(stated: Stated, resources: Resources, _: list[str]) -> None:
    """Of a node, in MiB unless it says otherwise; 0 is all there is, which nobody says here."""
    resources.host_memory_bytes = _bytes(stated)


def _bytes(stated: Stated | None) -> Count | None:
    match = _MEMORY.match(stated.text.strip()) if stated is not None else None
    if match is None or stated is None or not int(match[1]):
        return None
    return Count(int(match[1]) * _SIZES[match[2].lower() or "m"], stated.place)


def _note_shared_memory(options: Arguments, resources: Resources) -> None:
    """Memory a GPU or a CPU."""
    if options.flags("mem") is not None:
        return
    cpus = times(resources.cpus_per_task or _unit(options), resources.tasks_per_node or _unit(options))
    resources.host_memory_bytes = (
        times(_bytes(options.flags("mem_per_gpu")), resources.of_a_node())
        or times(_bytes(options.flags("mem_per_cpu")), cpus)
        or resources.host_memory_bytes
    )


def _unit(options: Arguments) -> Count | None:
    stated = options.flags("mem_per_cpu")
    return Count(1, stated.place) if stated is not None else None


_NOTES: dict[str, Callable[[Stated, Resources, list[str]], None]] = {
    "nodes": _nodes,
    "ntasks": _counted("tasks"),
    "tasks": _counted("tasks"),
    "ntasks_per_node": _counted("tasks_per_node"),
    "tasks_per_node": _counted("tasks_per_node"),
    "cpus_per_task": _counted("cpus_per_task"),
    "gpus": _gpus("gpus"),
    "gpus_per_node": _gpus("gpus_per_node"),
    "gres": _gres,
    "tres_per_node": _gres,
    "mem": _memory,
}


def slurm_variables(resources: Resources) -> dict[str, str]:
    """Variables that Slurm sets in a job (sbatch(1), OUTPUT ENVIRONMENT VARIABLES), as far as they follow."""
    nodes = resources.all_nodes()
    count = nodes.value if nodes is not None else 1
    each = resources.of_a_node()
    per_node = resources.tasks_per_node.value if resources.tasks_per_node is not None else None
    tasks = resources.tasks.value if resources.tasks is not None else (per_node or 1) * count
    found: dict[str, int | None] = {
        "SLURM_NNODES": count,
        "SLURM_JOB_NUM_NODES": count,
        "SLURM_NTASKS": tasks,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS_PER_NODE": per_node,
        "SLURM_TASKS_PER_NODE": per_node or max(1, tasks // count),
        "SLURM_CPUS_PER_TASK": resources.cpus_per_task.value if resources.cpus_per_task is not None else None,
        "SLURM_GPUS_ON_NODE": each.value if each is not None else None,
        "SLURM_GPUS_PER_NODE": each.value if each is not None else None,
        "SLURM_GPUS": each.value * count if each is not None else None,
    }
    return {name: str(value) for name, value in found.items() if value is not None} | {"SLURM_SUBMIT_DIR": "."}
