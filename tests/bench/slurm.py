"""What the hook costs a real Slurm: a submission, somebody who only looks on, a gate that does not answer, two hundred at once."""

from __future__ import annotations

import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import yaml
from tests.bench.programs import peakgate_server
from tests.integration.slurm.cluster import HERE, OTHER_USER, Done, Slurm, cluster, job_number, missing
from tests.integration.slurm.gate import RunningGate, running_gate, use_hook
from tests.integration.slurm.jobs import FITS
from tests.slurm_gates import misbehaving_gate

NOTHING = (HERE / "nothing_job_submit.lua").read_text()
CALL = re.compile(r"peakgate: uid=\d+ (?:admitted|refused) (\S+) in ([0-9.]+) ms")
FLAGS = ("--gres=gpu:h100:1", "--hold")
FAILURES = ("hang", "drip", "garbage", "stopped", "absent")
FAILING_CALLS = 3
"""So many before the breaker opens."""


@contextmanager
def healthy(slurm: Slurm, folder: Path) -> Iterator[RunningGate]:
    """A service and a gate that have seen the job, asked by the controller."""
    with peakgate_server(folder) as service, running_gate(folder, "mode: enforce\n", "--server", service.target) as gate:
        use_hook(slurm, gate.socket)
        submit(slurm)
        yield gate


def submit(slurm: Slurm) -> Done:
    """A job that fits and never starts."""
    return slurm.sbatch(FITS, *FLAGS)


def seconds_of(call: Callable[[], object]) -> float:
    """Wall time of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def calls_of(slurm: Slurm, since: int = 0) -> list[tuple[str, float]]:
    """The hook's own lines: what a job was stamped with, and the seconds that it took."""
    return [(word, float(milliseconds) / 1e3) for word, milliseconds in CALL.findall(slurm.log()[since:])]


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest rank."""
    return sorted(values)[max(0, round(share * len(values)) - 1)]


def hook_p95_seconds(slurm: Slurm, submissions: int) -> float:
    """95th percentile of the time that the hook holds the controller, of jobs that differ from each other in their names."""
    since = len(slurm.log())
    for _ in range(submissions):
        submit(slurm)
    found = calls_of(slurm, since)
    if len(found) != submissions:
        raise RuntimeError(f"{len(found)} of {submissions} calls are in the log")
    return percentile([seconds for _, seconds in found], 0.95)


def added_seconds(slurm: Slurm, gate: RunningGate, rounds: int, submissions: int = 10) -> float:
    """Median time of an sbatch with the hook less that with a script that does nothing, in turns; the least of the rounds."""
    found = []
    for _ in range(rounds):
        slurm.job_submit(NOTHING)
        submit(slurm)
        without = median(seconds_of(lambda: submit(slurm)) for _ in range(submissions))
        use_hook(slurm, gate.socket)
        submit(slurm)
        found.append(median(seconds_of(lambda: submit(slurm)) for _ in range(submissions)) - without)
    return min(found)


@contextmanager
def failing(slurm: Slurm, folder: Path, mode: str) -> Iterator[None]:
    """A gate that does not answer, asked by a hook whose breaker is closed."""
    path = folder / f"{mode}.sock"
    if mode == "absent":
        use_hook(slurm, path)
        yield
        return
    with misbehaving_gate(path, "answer" if mode == "stopped" else mode) as process:
        if mode == "stopped":
            process.send_signal(signal.SIGSTOP)
        use_hook(slurm, path)
        yield


def failing_seconds(slurm: Slurm, folder: Path, mode: str, submissions: int = 6) -> tuple[float, float]:
    """The slowest sbatch of the first three, and of the others. Raises RuntimeError when a job is lost or carries no stamp."""
    times: list[float] = []
    jobs: list[Done] = []
    with failing(slurm, folder, mode):
        times += [seconds_of(lambda: jobs.append(submit(slurm))) for _ in range(submissions)]
    stamps = {slurm.job(job_number(job)).get("AdminComment", "").strip() for job in jobs}
    if stamps != {"peakgate=unchecked"}:
        raise RuntimeError(f"{mode}: {stamps}")
    return max(times[:FAILING_CALLS]), max(times[FAILING_CALLS:])


def looked_on_seconds(slurm: Slurm, folder: Path, *, parallel: int) -> float:
    """The longest that another user's sinfo takes while `parallel` jobs are submitted to a gate that hangs."""
    found: list[float] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            found.append(seconds_of(lambda: slurm.run("sinfo", "-h", user=OTHER_USER)))

    with failing(slurm, folder, "hang"):
        looking = threading.Thread(target=look)
        looking.start()
        with ThreadPoolExecutor(parallel) as pool:
            for done_one in pool.map(lambda _: submit(slurm), range(max(parallel, 6))):
                job_number(done_one)
        done.set()
        looking.join()
    return max(found)


def lost_of(slurm: Slurm, submissions: int, parallel: int = 20) -> tuple[int, int]:
    """Of jobs that are submitted at once to a healthy gate: those that the controller does not have, and those without a prediction."""
    with ThreadPoolExecutor(parallel) as pool:
        numbers = [job_number(each) for each in pool.map(lambda _: submit(slurm), range(submissions))]
    shown = slurm.run("scontrol", "show", "job", "-o", user="root").stdout.splitlines()
    mine = {each.split()[0].removeprefix("JobId="): each for each in shown}
    there = [mine[str(number)] for number in numbers if str(number) in mine]
    stamped = [each for each in there if re.search(r"AdminComment=peakgate=[0-9a-f]{8,}", each)]
    return submissions - len(there), submissions - len(stamped)


def measured(slurm: Slurm, folder: Path) -> Iterator[tuple[str, float]]:
    """Every figure by the name of its bar."""
    with healthy(slurm, folder) as gate:
        yield "slurm_hook_p95_seconds", min(hook_p95_seconds(slurm, 100) for _ in range(3))
        yield "slurm_added_seconds", added_seconds(slurm, gate, rounds=3, submissions=30)
        lost = [lost_of(slurm, 200) for _ in range(3)]
        yield "slurm_lost_jobs", max(jobs for jobs, _ in lost)
        yield "slurm_unchecked_jobs", min(unchecked for _, unchecked in lost)
    slurm.reset()
    slowest = {mode: [failing_seconds(slurm, folder, mode) for _ in range(3)] for mode in FAILURES}
    for mode, found in slowest.items():
        print(f"  {mode}: sbatch {min(first for first, _ in found):.3f} s, then {min(rest for _, rest in found):.3f} s")
    yield "slurm_failing_call_seconds", max(min(first for first, _ in found) for found in slowest.values())
    yield "slurm_broken_call_seconds", max(min(rest for _, rest in found) for found in slowest.values())
    yield "slurm_looked_on_seconds", min(looked_on_seconds(slurm, folder, parallel=1) for _ in range(3))
    yield "slurm_looked_on_parallel_seconds", min(looked_on_seconds(slurm, folder, parallel=20) for _ in range(3))


def main() -> bool:
    """Prints every figure, best of three; whether the bars hold."""
    if absent := missing():
        print(f"NOT MEASURED: {absent}")
        return False
    bounds, holds = yaml.safe_load(Path(__file__).with_name("bounds.yaml").read_text()), True
    with tempfile.TemporaryDirectory() as folder, cluster() as slurm:
        for name, found in measured(slurm, Path(folder)):
            bar = float(bounds[name]["bar"])
            holds = holds and found <= bar
            print(f"{name}: {found:.4g} (bar {bar:g}: {'holds' if found <= bar else 'BROKEN'})", flush=True)
    return holds
