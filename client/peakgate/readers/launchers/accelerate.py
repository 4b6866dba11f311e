"""Accelerate and DeepSpeed: processes in all, and GPUs of hosts."""

from __future__ import annotations

import re

from peakgate.readers.files import FileError
from peakgate.readers.launchers.flags import taken
from peakgate.readers.launchers.resources import Count, count_of, shared
from peakgate.readers.launchers.state import Peel
from peakgate.readers.place import Stated
from peakgate.readers.settings import Settings

_BARE = dict.fromkeys(
    (
        "quiet", "q", "cpu", "multi_gpu", "tpu", "ipex", "enable_cpu_affinity", "dynamo_use_fullgraph", "dynamo_use_dynamic",
        "dynamo_use_regional_compilation", "use_deepspeed", "use_fsdp", "use_megatron_lm", "use_xpu", "use_parallelism_config",
        "same_network", "m", "module", "no_python", "tpu_cluster", "no_tpu_cluster", "tpu_use_sudo", "downcast_bf16",
        "fp8_use_autocast_during_eval", "debug", "h", "help",
    ),
    0,
)  # fmt: skip
"""Of accelerate/commands/launch.py, launch_command_parser: the flags without a value."""


def accelerate(peel: Peel) -> None:
    """`accelerate launch`: what flags do not say its config file says; without either it takes every GPU (_validate_launch_command)."""
    if peel.words[0].text.endswith("accelerate"):
        if len(peel.words) < 2 or peel.words[1].text != "launch":
            peel.words = []
            return
        peel.words = peel.words[1:]
    program = peel.words[0]
    arguments, rest = taken(peel.words[1:], _BARE, 1)
    peel.note("accelerate", arguments)
    file = arguments.flags("config_file")
    config = peel.settings_of(file.text) if file is not None else Settings()
    said = config.merged(arguments.flags)
    resources = peel.resources
    resources.processes = count_of(said("num_processes"))
    resources.process_nodes = count_of(said("num_machines")) or (Count(1, program.place) if resources.all_nodes() is None else None)
    ids = said("gpu_ids")
    if ids is not None and ids.text != "all":
        resources.visible = Count(len(ids.text.split(",")), ids.place)
    resources.processes_per_node = shared(resources.processes, resources.process_nodes or resources.all_nodes())
    if resources.processes is None:
        resources.every_gpu = program.place
    peel.words = rest


_RUNNER = dict.fromkeys(
    (
        "module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "save_pid", "elastic_training",
        "bind_cores_to_rank", "h", "help",
    ),
    0,
)  # fmt: skip
"""Of deepspeed/launcher/runner.py, parse_args: the flags without a value."""

_HOST_LINE = re.compile(r"^\s*([^\s#]\S*)\s+slots\s*=\s*(\d{1,4})", re.MULTILINE)


def deepspeed(peel: Peel) -> None:
    """`deepspeed`: GPUs a node, nodes, `--include`, `--exclude`, a host file; else every GPU of this node."""
    program = peel.words[0]
    arguments, rest = taken(peel.words[1:], _RUNNER, 1)
    peel.note("deepspeed", arguments)
    resources, flags = peel.resources, arguments.flags
    resources.processes, resources.processes_per_node = None, count_of(flags.first("num_gpus", "num_accelerators"))
    hosts = _hosts(flags.first("hostfile", "H"), peel)
    included = flags.first("include", "i")
    nodes = count_of(flags("num_nodes"))
    if included is not None:
        _note_included(included, hosts, peel)
    elif hosts:
        file = flags.first("hostfile", "H") or included
        place = file.place if file is not None else program.place
        resources.process_nodes = nodes or Count(len(hosts), place)
        resources.processes_per_node = resources.processes_per_node or Count(max(hosts.values()), place)
    else:
        resources.process_nodes = nodes or (
            None if resources.all_nodes() is not None and flags.has("hostfile") else Count(1, program.place)
        )
    if resources.processes_per_node is None and resources.processes is None:
        resources.every_gpu = program.place
    peel.words = rest


def _hosts(stated: Stated | None, peel: Peel) -> dict[str, int]:
    """Hosts with their slots."""
    if stated is None:
        return {}
    try:
        return {host: int(slots) for host, slots in _HOST_LINE.findall(peel.files.text(stated.text)) if int(slots)}
    except FileError as error:
        if peel.resources.all_nodes() is None:
            peel.warnings.append(f"{stated.text} {error}: its hosts are not known ({stated.place})")
        return {}


def _note_included(stated: Stated, hosts: dict[str, int], peel: Peel) -> None:
    """`localhost:0,1`, `worker-0@worker-1:0,2`."""
    resources, total, nodes = peel.resources, 0, 0
    for one in stated.text.split("@")[:10_000]:
        host, colon, slots = one.partition(":")
        count = len(set(slots.split(","))) if colon else hosts.get(host, 0)
        if not count:
            resources.every_gpu = stated.place
            return
        total, nodes = total + count, nodes + 1
    resources.processes, resources.process_nodes = Count(total, stated.place), Count(nodes, stated.place)
    resources.processes_per_node = shared(resources.processes, resources.process_nodes)
