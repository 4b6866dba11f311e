"""Whether it works: the stamps on the jobs that Slurm still knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from peakgate.client.doctor.check import Check, State
from peakgate.client.imports.joined import UNCHECKED as NO_PREDICTION
from peakgate.hooks.slurm.doctor.site import Site
from peakgate.hooks.slurm.records import fields_of
from peakgate.hooks.slurm.submission import submission_of

STAMP = "peakgate="
UNCHECKED = f"{STAMP}{NO_PREDICTION}"
JOBSTATS = "JS1:"
"""What Princeton's jobstats writes over an AdminComment at a job's end (PrincetonUniversity/jobstats, README)."""

_FIELDS = {"TresPerNode": "tres_per_node", "TresPerJob": "tres_per_job", "TresPerTask": "tres_per_task", "TresPerSocket": "tres_per_socket"}
LAST = 20
"""So many of the newest jobs with GPUs are looked at."""


def job_checks(site: Site, text: str) -> Iterator[Check]:
    """`text`: of `scontrol show job -o`."""
    jobs = [found for found in map(fields_of, text.splitlines()) if "JobId" in found]
    newest = [job for job in jobs if _asks_for_gpus(job)][-LAST:]
    yield stamps(newest)
    yield from comments(jobs)
    yield accounting(site)
    yield submit_host(site)


def _asks_for_gpus(job: Mapping[str, str]) -> bool:
    return submission_of({ours: job[theirs] for theirs, ours in _FIELDS.items() if theirs in job}).asks_for_gpus


def stamps(jobs: Sequence[Mapping[str, str]]) -> Check:
    """Of the newest jobs with GPUs: the controller's script stamps each that it had checked, and each that it could not."""
    if not jobs:
        return Check(name="jobs", state=State.note, found="no job with GPUs to look at; submit one, and run this again")
    told = [job.get("AdminComment", "") for job in jobs]
    unchecked = sum(UNCHECKED in each for each in told)
    checked = sum(STAMP in each for each in told) - unchecked
    rest = len(jobs) - checked - unchecked
    found = f"of the last {len(jobs)} jobs with GPUs {checked} were checked, {unchecked} admitted unchecked, {rest} bear no stamp"
    if checked + unchecked == 0:
        remedy = "the hook is not called, its mode is off, or no job trains: see slurmctld's log for lines with peakgate"
        return Check(name="jobs", state=State.note, found=found, remedy=remedy)
    if unchecked and UNCHECKED in told[-1]:
        return Check(name="jobs", state=State.bad, found=found, remedy="the gate did not answer for the newest: see the checks of the gate")
    return Check(name="jobs", state=State.ok, found=found)


def comments(jobs: Sequence[Mapping[str, str]]) -> Iterator[Check]:
    """Another program that writes AdminComment wipes the stamp."""
    if any(job.get("AdminComment", "").startswith(JOBSTATS) for job in jobs):
        remedy = 'keep the stamp elsewhere: peakgate.configure({ stamp_field = "extra" }) on 23.11 and later; before, bind by the epilog'
        yield Check(name="stamp", state=State.bad, found="jobstats writes its summary there, over the stamp", remedy=remedy)


def accounting(site: Site) -> Check:
    """AdminComment is kept in the accounting; without one it is gone with the job, after MinJobAge."""
    kind = site.settings.get("AccountingStorageType", "")
    if kind.endswith("slurmdbd"):
        return Check(name="accounting", state=State.ok, found=kind)
    remedy = "tell the end of jobs by EpilogSlurmctld (peakgate slurm ended); `peakgate slurm sync` needs slurmdbd"
    return Check(name="accounting", state=State.note, found=f"{kind or 'none'}: no job's end can be looked up later", remedy=remedy)


def submit_host(site: Site) -> Check:
    """Most scripts name files that only their owner may read, so they are read where he submits."""
    if "lua" in site.filters:
        return Check(name="submit host", state=State.ok, found="CliFilterPlugins has lua")
    remedy = "install deploy/slurm/cli_filter.lua with CliFilterPlugins=lua, or tell users of `peakgate sbatch`"
    return Check(name="submit host", state=State.note, found="no cli_filter: scripts that name config files are not judged", remedy=remedy)
