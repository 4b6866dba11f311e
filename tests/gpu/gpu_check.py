"""Holds predictions against this machine's GPU: `make gpu-check`. It is no test of the suite; it prints a table for a person.

For each small real job: allocated and reserved peaks as torch prints them and the device peak as NVML shows it, beside what Predict
said before. Then one job runs under the real agent, and what reached the service is held against what NVML showed. Exit status: 0
when everything ran, 1 when something failed, 2 when there is no GPU to check.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.bench.accuracy import ask, number
from tests.bench.programs import PEAKGATE, ROOT, environment, peakgate_server
from tests.gpu.cases import CASES, Case

MEASURES = ("allocated_bytes", "reserved_bytes", "device_bytes")
GIB = 2**30
AGENT_SECONDS = 20
NOTHING_TO_CHECK = 2


def missing() -> str:
    """Why nothing can be checked here; empty when there is a GPU that torch can use."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"NVML says: {error}"
    import torch

    return "" if torch.cuda.is_available() else f"torch {torch.__version__} cannot use the GPU"


def measure(case: Case, *, seconds: float = 0.0, **settings: str) -> dict[str, float]:
    """Trains a case in a process of its own; raises RuntimeError with its last words when it fails."""
    command = [sys.executable, "-m", "tests.gpu.training", case.name, str(seconds)]
    done = subprocess.run(command, cwd=ROOT, env=environment(**settings), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case.name}: {done.stderr.strip()[-500:]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def documents() -> list[dict[str, object]]:
    """The job documents of all cases on this machine's first GPU."""
    import torch
    import transformers

    total = torch.cuda.get_device_properties(0).total_memory
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    return [case.document(gpu_total_bytes=total, **versions) for case in CASES]


def line(name: str, measured: Mapping[str, float], answer: Mapping[str, object]) -> str:
    """Measured GiB, predicted GiB and their ratio for each measure."""
    cells = [(measured[key], number(answer, f"peak.{key}")) for key in MEASURES]
    return f"{name:22}" + "".join(f"{got / GIB:9.3f}{said / GIB:9.3f}{said / got if got else 0:7.3f}" for got, said in cells)


def compare_jobs() -> int:
    """Prints the table; gives how many jobs failed."""
    failed = 0
    print(f"{'job':22}" + "".join(f"{f'{key[:-6]} GiB':>9}{'said':>9}{'ratio':>7}" for key in MEASURES))
    for case, answer in zip(CASES, ask(documents()), strict=True):
        try:
            measured = measure(case)
        except RuntimeError as error:
            failed += 1
            print(f"{case.name:22} failed: {error}")
            continue
        print(line(case.name, measured, answer), flush=True)
        print(f"{'':22} context {measured['context_bytes'] / 2**20:.0f} MiB; verdict {answer.get('verdict', answer.get('error'))}")
    return failed


def predict(target: str, folder: Path, document: Mapping[str, object]) -> str:
    """The id of a prediction stored by the service."""
    path = folder / "job.json"
    path.write_text(json.dumps(document))
    command = [str(PEAKGATE), "predict", str(path), "--server", target, "--output", "jsonl"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    return str(json.loads(done.stdout)["prediction"])


def compare_agent() -> int:
    """Runs the real agent beside a job; prints what it reported and what NVML showed to the job itself. 1 when nothing arrived."""
    case = CASES[0]
    with tempfile.TemporaryDirectory() as name, peakgate_server(Path(name)) as service:
        prediction = predict(service.target, Path(name), documents()[0])
        command = [
            str(PEAKGATE),
            "agent",
            "--server",
            service.target,
            "--spool",
            f"{name}/spool.sqlite3",
            "--duration",
            str(AGENT_SECONDS + 20),
        ]
        agent = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        measured = measure(case, seconds=AGENT_SECONDS, PEAKGATE_PREDICTION=prediction)
        agent.wait(timeout=120)
        listed = subprocess.run(
            [str(PEAKGATE), "jobs", "--server", service.target, "--output", "json"],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
    observed = max((number(job, "observed_device_bytes") for job in rows_of(json.loads(listed.stdout))), default=0.0)
    print(f"agent: the service was told {observed / GIB:.3f} GiB, NVML showed the job {measured['device_bytes'] / GIB:.3f} GiB")
    return int(observed == 0)


def rows_of(listed: object) -> list[Mapping[str, object]]:
    """The rows of a list answer, whether it is a bare list or has a name."""
    return listed if isinstance(listed, list) else list(listed["predictions"]) if isinstance(listed, dict) else []


def main() -> int:
    """Checks what can be checked."""
    if reason := missing():
        print(f"gpu-check: no GPU to check here, nothing was compared ({reason})")
        return NOTHING_TO_CHECK
    print(f"process {os.getpid()}, {len(CASES)} jobs, one step each after warm-up; sizes in GiB = 2^30 bytes")
    return int(bool(compare_jobs() + compare_agent()))


if __name__ == "__main__":
    sys.exit(main())
