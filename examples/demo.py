"""The whole of peakgate in two minutes: ask before a job runs, watch it run, ask again.

Starts a real service on SQLite in a temporary folder and on free ports, and a real node agent whose NVIDIA driver is simulated,
so that it runs on a machine without a GPU. Everything is stopped and removed at the end.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from peakgate.client.connect import Client, connect
from peakgate.client.render.units import gb
from peakgate.client.sources import read_one
from peakgate.v1.prediction_pb2 import PredictResponse

EXAMPLES = Path(__file__).parent
ROOT = EXAMPLES.parent
PEAKGATE = Path(sys.executable).with_name("peakgate")
FITS = EXAMPLES / "llama-3.2-1b-full.yaml"
DOES_NOT_FIT = EXAMPLES / "textbook-1.3b.yaml"

START_SECONDS = 30.0
STOP_SECONDS = 15.0
JOB_SECONDS = 4
"""How long the simulated GPU shows the stand-in job."""

OBSERVED_RATIOS = (1.07, 1.06, 1.08)
"""What the simulated GPU shows over what was predicted: on this cluster such jobs need about 7 % more than the model says."""

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PEAKGATE_")}
ENVIRONMENT["PEAKGATE_QUIET_SECONDS"] = "0"  # nobody watches for a minute whether the job goes on
"""The caller's own settings stay out of the demonstration."""

console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def main() -> int:
    """Tells the story; returns the exit status."""
    _say(
        "peakgate answers one question before a training job is queued: will its fullest GPU run out of memory?",
        "This demonstration starts a service, asks it about real jobs, and lets it learn from jobs that ran.",
    )
    with tempfile.TemporaryDirectory(prefix="peakgate-demo-") as folder:
        _chapter(1, "A service is started", "It keeps what it predicts and what was observed in one SQLite file.")
        with _service(Path(folder)) as server, connect(server) as client:
            _ask(server)
            _learn(server, client, Path(folder))
        _chapter(6, "Done", "The service was told to stop and has stopped. Nothing is left behind.")
    return 0


def _ask(server: str) -> None:
    _chapter(
        2,
        "A job that fits",
        "Llama 3.2 with 1 billion parameters, fine-tuned as a whole on one 48 GB card. The file says what a launch script says:",
        "model, batch, precision, optimizer, GPU. A published run of exactly this job peaked at 17.5 GB allocated.",
        "In the answer, what is needed is less than what the process shows on the device: PyTorch reserves memory beyond its tensors,",
        "which it gives up when the card is full, and the CUDA context comes on top. The verdict compares what is needed with the card.",
    )
    _run("predict", _shown(FITS), "--server", server, want=0)
    _chapter(
        3,
        "A job that does not fit, and what to change",
        "A GPT with 1.3 billion parameters on one 80 GB card, with attention that stores every score. The answer is REJECT, the",
        "bars show what fills the memory, and the list ranks the changes: the first one that fits is the cheapest.",
    )
    _run("predict", _shown(DOES_NOT_FIT), "--server", server, want=1)


def _learn(server: str, client: Client, folder: Path) -> None:
    _chapter(
        4,
        "The job of chapter 2 runs three times, and an agent watches the GPU",
        "The agent reads from the NVIDIA driver how much memory each process holds, finds the job's prediction in the environment",
        "of the process (PEAKGATE_PREDICTION), and reports the highest value. The driver is simulated here; the rest is real.",
    )
    before = _predict(client)
    for number, ratio in enumerate(OBSERVED_RATIOS, start=1):
        answer = _predict(client)
        observed_bytes = round(answer.peak.device_bytes * ratio)
        console.print(f"  run {number}: predicted {gb(answer.peak.device_bytes)} on the device; the GPU will show {gb(observed_bytes)}")
        _run_job(server, folder, answer.prediction, observed_bytes)
        _wait_until_learned(client, answer.calibration.observations + 1)
        console.print(f"         bound of the next such job: {_bound(_predict(client))}")
    _chapter(
        5,
        "The margin has moved",
        "A prediction is a point; the verdict uses an upper bound of what is needed, which 95 % of jobs stay below. With nothing observed",
        "the bound rests on general experience. The three runs used more than was predicted, so it has risen for the next job of this",
        "kind; had they used less, or just what was predicted, it would have come down as more of them were seen.",
    )
    after = _predict(client)
    console.print(f"  before: {_bound(before)}\n  after:  {_bound(after)}")
    least, most = min(OBSERVED_RATIOS) - 1, max(OBSERVED_RATIOS) - 1
    _say(
        f"Why {_margin(after):.0%}, when the runs were {least:.0%} to {most:.0%} above: the next job may be further off than these.",
        "General experience says how far jobs of one kind spread, and counts for less with each run that is seen.",
        "The table below compares another figure: what was predicted and what was seen on the device, for each run.",
    )
    _run("jobs", "--observed", "--server", server, want=0)


def _predict(client: Client) -> PredictResponse:
    return client.predict(read_one(str(FITS), sys.stdin.buffer))


def _bound(answer: PredictResponse) -> str:
    return (
        f"{answer.peak.bound_bytes / 1e9:.2f} GB = {answer.peak.required_bytes / 1e9:.2f} GB needed and {_margin(answer):.1%} margin"
        f" (jobs of this kind observed: {answer.calibration.observations})"
    )


def _margin(answer: PredictResponse) -> float:
    return answer.peak.bound_bytes / answer.peak.required_bytes - 1


def _wait_until_learned(client: Client, observations: int) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while _predict(client).calibration.observations < observations:
        if time.monotonic() > deadline:
            raise RuntimeError("the observed peak did not reach the margin")
        time.sleep(0.1)


def _run_job(server: str, folder: Path, prediction: str, observed_bytes: int) -> None:
    """A stand-in process carries the prediction's name while the agent sees it on the simulated GPU."""
    with _program([sys.executable, "-c", "input()"], PEAKGATE_PREDICTION=prediction) as job:
        scenario = f"demo,PID={job.pid},PEAK={observed_bytes},SECONDS={JOB_SECONDS}"
        command: list[str | Path] = [PEAKGATE, "agent", "--server", server, "--simulate", scenario, "--node", "demo-node"]
        command += ["--cluster", "demo", "--interval", "0.5", "--duration", str(JOB_SECONDS + 3), "--spool", folder / "spool.db"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    if done.returncode:
        raise RuntimeError(f"the agent ended with {done.returncode}:\n{done.stderr}")


@contextmanager
def _service(folder: Path) -> Iterator[str]:
    grpc_port, http_port = _free_port(), _free_port()
    log = folder / "service.log"
    arguments = ["serve", "--port", str(grpc_port), "--http-port", str(http_port), "--db", f"sqlite:///{folder}/peakgate.sqlite3"]
    _show_command(arguments)
    with log.open("w") as output, _program([PEAKGATE, *arguments], output=output) as process:
        _wait_until_ready(process, f"http://127.0.0.1:{http_port}/readyz", log)
        console.print(f"  It listens on 127.0.0.1:{grpc_port} for jobs and on http://127.0.0.1:{http_port} for browsers and Prometheus.")
        yield f"127.0.0.1:{grpc_port}"


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - a fixed address of this host
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the service did not start:\n{log.read_text()}")


@contextmanager
def _program(command: Sequence[str | Path], output: object = None, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child process that is told to stop, by its id, when the block ends."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=output,  # type: ignore[call-overload]  # whatever Popen takes for a stream
        stderr=subprocess.STDOUT,
        env=ENVIRONMENT | environment,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _run(*arguments: str, want: int) -> None:
    """Runs a verb as a person would type it, and shows what it prints."""
    _show_command(arguments)
    done = subprocess.run([PEAKGATE, *arguments], capture_output=True, text=True, check=False, cwd=ROOT, env=ENVIRONMENT)
    console.print(escape("\n".join(f"  {line}".rstrip() for line in done.stdout.splitlines())), soft_wrap=True)
    if done.returncode != want:
        raise RuntimeError(f"exit status {done.returncode} instead of {want}:\n{done.stderr}")
    console.print(f"  (exit status {done.returncode})", style="dim")


def _show_command(arguments: Sequence[str]) -> None:
    console.print(f"\n  $ peakgate {escape(' '.join(arguments))}", style="bold", soft_wrap=True)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _chapter(number: int, title: str, *lines: str) -> None:
    console.print(f"\n[bold cyan]{number}. {title}[/]")
    _say(*lines)


def _say(*lines: str) -> None:
    for line in lines:
        console.print(f"  {escape(line)}", soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
