"""Puts together what the options name: the sources that say whose a process is, and who holds a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from peakgate.agent.attribution import Attribution
from peakgate.agent.drop_ins import DropIns, JobsOfGpus
from peakgate.agent.gpu_numbers import NumbersModule, NvmlNumbers
from peakgate.agent.host_pids import HostPids
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.options import Options
from peakgate.agent.proc import ProcFolder
from peakgate.agent.site_folders import dcgm_folder, jobstats_folder

if TYPE_CHECKING:
    from peakgate.agent.pod_watch import PodWatch


def attribution_of(options: Options, *, proc: ProcFolder) -> Attribution:
    """The attribution. A scenario's pids are made up, so a simulation does not check that they are the machine's."""
    numbers_of = NvmlNumbers(module=cast("NumbersModule", load_pynvml())).of
    folders: list[JobsOfGpus] = [JobsFolder(folder=options.jobs_folder)]
    if options.jobstats_folder:
        folders.append(jobstats_folder(folder=options.jobstats_folder, meaning=options.gpu_numbers, numbers_of=numbers_of))
    if options.dcgm_folder:
        folders.append(dcgm_folder(folder=options.dcgm_folder, meaning=options.gpu_numbers, numbers_of=numbers_of))
    host_pids = None if options.simulate else HostPids(proc=proc)
    return Attribution(cluster=options.cluster, proc=proc, jobs=DropIns(*folders), host_pids=host_pids)


def pod_watch_of(options: Options) -> PodWatch | None:
    """The watch over the kubelet's answers, not yet started; None on a node without the kubelet's folder, whose socket may come later."""
    if options.kubelet_socket is None or not options.kubelet_socket.parent.is_dir():
        return None
    from peakgate.agent.cluster_api import own_cluster  # other nodes do without HTTP and TLS in memory
    from peakgate.agent.kubelet import Kubelet
    from peakgate.agent.pod_watch import PodWatch, no_claims
    from peakgate.agent.resource_slices import ResourceSlices

    api = own_cluster()
    uuid_of = ResourceSlices(api=api, node=options.node).uuid_of if api else no_claims
    return PodWatch(kubelet=Kubelet(socket=options.kubelet_socket), uuid_of=uuid_of)


@contextlib.contextmanager
def watching_pods(options: Options) -> Iterator[PodWatch | None]:
    """The same, started, while the block runs."""
    pods = pod_watch_of(options)
    if pods:
        pods.start()
    try:
        yield pods
    finally:
        if pods:
            pods.stop()
