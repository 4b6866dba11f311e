"""A real `peakgate gate` beside a test cluster, and the hook that asks it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.programs import PEAKGATE, ROOT, environment
from tests.integration.slurm.cluster import Slurm

HOOK = ROOT / "deploy/slurm"
START_SECONDS = 60.0
METRICS = "metrics on port "


@dataclass(frozen=True)
class RunningGate:
    """A gate's process, and where its files lie."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int

    @property
    def socket(self) -> Path:
        """Where the hook asks."""
        return self.folder / "gate.sock"

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.folder / "gate.log").read_text()

    def rules(self, text: str) -> None:
        """Gives it rules, in force from the next submission on."""
        path = self.folder / "gate.yaml.new"
        path.write_text(text)
        path.rename(self.folder / "gate.yaml")

    def journal(self, least: int = 0) -> list[dict[str, object]]:
        """The decisions, when there are at least so many."""
        path = self.folder / "journal.jsonl"
        deadline = time.monotonic() + 5.0
        while time.monotonic() < deadline:
            found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
            if len(found) >= least:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{len(found)} decisions, not {least}: {found}")

    def metrics(self) -> str:
        """The metrics as Prometheus reads them."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
        return text


@contextlib.contextmanager
def running_gate(folder: Path, rules: str, *options: str) -> Iterator[RunningGate]:
    """A gate that listens, and whose service beside it is ready where it has one."""
    (folder / "gate.yaml").write_text(rules)
    places = [
        "--socket",
        folder / "gate.sock",
        "--rules",
        folder / "gate.yaml",
        "--cards",
        folder / "cards.yaml",
        "--journal",
        folder / "journal.jsonl",
    ]
    with (folder / "gate.log").open("wb") as output:
        command = [str(PEAKGATE), "gate", *map(str, places), "--metrics-port", "0", *options]
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=output, stderr=subprocess.STDOUT)
    try:
        yield RunningGate(process, folder, _wait(process, folder / "gate.log", "--no-beside" not in options))
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], log: Path, has_beside: bool) -> int:
    """Until it is ready; the port of its metrics."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        text = log.read_text()
        if METRICS in text and (not has_beside or "is ready" in text):
            return int(text.partition(METRICS)[2].split()[0])
        time.sleep(0.05)
    raise RuntimeError(f"the gate does not start: {log.read_text()[-2000:]}")


def use_hook(slurm: Slurm, socket: Path, **settings: str) -> None:
    """Gives the controller the hook as a site has it; settings are written in Lua."""
    slurm.write("peakgate.lua", (HOOK / "peakgate.lua").read_text())
    example = (HOOK / "job_submit.lua").read_text()
    more = "".join(f"peakgate.configure({{ {name} = {value} }})\n" for name, value in settings.items())
    text = example.replace("/etc/slurm/?.lua", f"{slurm.folder}/?.lua").replace("/run/peakgate-gate/gate.sock", str(socket))
    slurm.job_submit(text.replace("-- end of peakgate\n", f"{more}-- end of peakgate\n"))
