"""The checks in the order of a submission's way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from peakgate.client.doctor.check import Check, State
from peakgate.hooks.slurm.doctor.gate import gate_checks
from peakgate.hooks.slurm.doctor.hook import hook_checks, try_script
from peakgate.hooks.slurm.doctor.jobs import job_checks
from peakgate.hooks.slurm.doctor.service import service_checks
from peakgate.hooks.slurm.doctor.site import Site
from peakgate.hooks.slurm.nodes import nodes_of
from peakgate.hooks.slurm.scontrol import ScontrolError, scontrol, settings_of


def slurm_checks(*, cards: Path, server: str, socket: Path | None) -> Iterator[Check]:
    """`socket`: the gate's, where it is not the one that the hook asks. Without a controller there is one check, which says so."""
    try:
        site = Site(settings=settings_of(scontrol("show", "config")), cards=cards, server=server)
        nodes, jobs = list(nodes_of(scontrol("show", "node", "-o"))), scontrol("show", "job", "-o")
    except ScontrolError as error:
        remedy = "run this where slurm.conf is, or set SLURM_CONF; start slurmctld"
        yield Check(name="slurm", state=State.bad, found=str(error), remedy=remedy)
        return
    script = try_script(site)
    yield from hook_checks(site, script)
    yield from gate_checks(site, socket or script.socket)
    yield from service_checks(site, nodes)
    yield from job_checks(site, jobs)
