"""Launchers that start processes on each node: torchrun and what takes its flags, MPI, Horovod, Composer, Colossal-AI."""

from __future__ import annotations

import re

from peakgate.readers.arguments import Arguments
from peakgate.readers.launchers.flags import taken
from peakgate.readers.launchers.resources import Count, count_of
from peakgate.readers.launchers.state import Launcher, Peel
from peakgate.readers.place import VARIABLE, Place, Stated

_BARE = dict.fromkeys(("standalone", "m", "module", "no_python", "run_path", "use_env", "h", "help"), 0)
"""Of torch/distributed/run.py and launch.py, get_args_parser: the flags without a value; all others take one."""


def torchrun(peel: Peel) -> None:
    """torchrun, python -m torch.distributed.run or launch."""
    arguments, rest = taken(peel.words[1:], _BARE, 1)
    peel.note("torchrun", arguments)
    note_processes(arguments, peel)
    peel.words = rest


def tune(peel: Peel) -> None:
    """`tune run`: torchrun's flags, and a recipe for a program (torchtune/_cli/run.py). Without a flag there is one process."""
    if len(peel.words) < 2 or peel.words[1].text != "run":
        peel.words = []
        return
    arguments, rest = taken(peel.words[2:], _BARE, 1)
    peel.note("tune", arguments)
    if arguments.flags.leaves:
        note_processes(arguments, peel)
    else:
        peel.resources.processes = Count(1, peel.words[0].place)
    peel.words = rest


def colossalai(peel: Peel) -> None:
    """`colossalai run` (colossalai/cli/launcher)."""
    if len(peel.words) < 2 or peel.words[1].text != "run":
        peel.words = []
        return
    arguments, rest = taken(peel.words[2:], {"m": 0}, 1)
    peel.note("colossalai", arguments)
    note_processes(arguments, peel)
    peel.words = rest


def composer(peel: Peel) -> None:
    """MosaicML's composer (composer/cli/launcher.py): `-n` processes a node, else one for each GPU; `--world_size` in all."""
    arguments, rest = taken(peel.words[1:], {"m": 0, "module_mode": 0, "c": 0, "command_mode": 0, "v": 0, "verbose": 0}, 1)
    if not rest:
        return
    peel.note("composer", arguments)
    peel.resources.processes = count_of(arguments.flags("world_size"))
    peel.resources.processes_per_node = count_of(arguments.flags.first("n", "nproc"))
    if peel.resources.processes_per_node is None:
        peel.resources.every_gpu = peel.words[0].place
    peel.words = rest


def note_processes(arguments: Arguments, peel: Peel) -> None:
    """`--nnodes` and `--nproc_per_node`, or PET_NNODES and PET_NPROC_PER_NODE (torch/distributed/argparse_util.py, env); 1 by default.
    Of a range of nodes the least holds, for fewer nodes share less; that it runs on more is another launch."""
    resources, program = peel.resources, peel.words[0]
    resources.processes, resources.every_gpu, resources.processes_per_node = None, None, None
    nodes = _stated("nnodes", arguments, peel) or arguments.flags("num_nodes")
    if nodes is not None:
        least, colon, most = nodes.text.partition(":")
        resources.process_nodes = count_of(Stated(least, nodes.place))
        if colon and most != least:
            peel.warnings.append(f"{nodes.text} nodes ({nodes.place}): the least is taken")
            peel.may_not_run = True
    else:
        resources.process_nodes = Count(1, program.place)
    each = _stated("nproc_per_node", arguments, peel)
    if each is None:
        resources.processes_per_node = Count(1, program.place)
    elif each.text in ("gpu", "auto"):
        resources.every_gpu = each.place
    else:
        resources.processes_per_node = count_of(each)
        if resources.processes_per_node is None:
            peel.warnings.append(f"parallelism.world_size: {each.text[:80]!r} processes a node ({each.place}) are not known here")
    if nodes is not None and resources.process_nodes is None:
        resources.process_nodes = resources.all_nodes()
        if resources.process_nodes is None:
            peel.warnings.append(f"parallelism.world_size: {nodes.text[:80]!r} nodes ({nodes.place}) are not known here; 1 is taken")


def _stated(name: str, arguments: Arguments, peel: Peel) -> Stated | None:
    return arguments.flags(name) or peel.environment(f"PET_{name.upper()}")


_MPI = {
    "allow_run_as_root": 0, "oversubscribe": 0, "use_hwthread_cpus": 0, "q": 0, "quiet": 0, "v": 0, "verbose": 0, "display_map": 0,
    "display_allocation": 0, "tag_output": 0, "timestamp_output": 0, "report_bindings": 0, "bynode": 0, "byslot": 0, "nolocal": 0, "h": 0,
    "np": 1, "n": 1, "c": 1, "mca": 2, "gmca": 2, "omca": 2, "pmca": 2, "prtemca": 2, "genv": 2, "env": 2, "genvall": 0, "envall": 0,
    "gloo": 0, "mpi": 0, "disable_cache": 0, "tcp": 0, "nooversubscribe": 0, "prefix": 1, "l": 0, "prepend_rank": 0,
}  # fmt: skip
"""Words behind a flag: Open MPI's mpirun(1), Hydra's mpiexec, horovodrun (horovod/runner/launch.py); one for another flag."""

_HOST = re.compile(r"[^:,\s]+(?::(\d{1,4}))?")
_PER_NODE = re.compile(r"ppr:(\d{1,4}):node")


def mpi(name: str) -> Launcher:
    """mpirun, mpiexec, horovodrun."""

    def peel_mpi(peel: Peel) -> None:
        _take_variables(peel)
        arguments, rest = taken(peel.words[1:], _MPI, 1)
        peel.note(name, arguments)
        resources, flags = peel.resources, arguments.flags
        resources.processes = count_of(flags.first("np", "n", "c", "num_proc"))
        mapped = flags("map_by") or flags("map-by")
        match = _PER_NODE.search(mapped.text) if mapped is not None else None
        each = flags.first("npernode", "N", "ppn", "perhost") or (Stated(match[1], mapped.place) if match and mapped is not None else None)
        resources.processes_per_node = count_of(each)
        hosts = flags.first("H", "host", "hosts")
        if hosts is not None and not hosts.text.startswith("$"):
            resources.process_nodes = Count(len(set(hosts.text.split(",")[:10_000])), hosts.place)
            slots = [int(found[1]) for found in _HOST.finditer(hosts.text[:100_000]) if found[1]]
            if slots and resources.processes_per_node is None:
                resources.processes_per_node = Count(max(slots), hosts.place)
        peel.words = rest

    return peel_mpi


def _take_variables(peel: Peel) -> None:
    """`-x NAME=value` of Open MPI."""
    for flag, word in zip(peel.words[1:200], peel.words[2:201], strict=False):
        key, joined, value = word.text.partition("=")
        if flag.text == "-x" and joined:
            peel.set(key, Stated(value, Place(kind=VARIABLE, key=key, file=word.place.file, line=word.place.line)))
