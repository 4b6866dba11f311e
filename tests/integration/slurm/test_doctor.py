"""`peakgate slurm doctor` on a real cluster: whole, and with each part broken in turn, which it names with its remedy."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.bench.programs import PEAKGATE, ROOT, environment
from tests.integration.slurm.cluster import Slurm, job_number

from peakgate.client.connect import connect
from peakgate.client.doctor.check import Check, State
from peakgate.hooks.slurm.doctor.run import slurm_checks
from peakgate.server.embedded import open_embedded
from peakgate.v1 import telemetry_service_pb2 as pb

DEPLOY = ROOT / "deploy" / "slurm"
H100, A100_40, A100_80 = 85_520_809_984, 42_949_672_960, 85_899_345_920
CARDS = """\
cards:
- {type: '', nodes: oldn1, gpu: v100-16gb}
- {type: 1g.10gb, gpu: h100-80gb/1g.10gb}
- {type: 3g.40gb, gpu: h100-80gb/3g.40gb}
- {type: kraken, memory_bytes: 18253611008}
"""
Checked = dict[str, Check]


@pytest.fixture
def site(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A cluster with our hook in it and no gate yet."""
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    monkeypatch.delenv("PEAKGATE_SERVER", raising=False)
    found = Site(slurm)
    found.install()
    yield found
    for name in ("peakgate.lua", "cards.yaml", "gate.sock"):
        (slurm.folder / name).unlink(missing_ok=True)


class Site:
    """What the doctor is asked about."""

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        self.socket = slurm.folder / "gate.sock"
        self.cards = slurm.folder / "cards.yaml"

    def install(self) -> None:
        """Hook and table, as an administrator would."""
        self.slurm.write("peakgate.lua", (DEPLOY / "peakgate.lua").read_text())
        self.script(lambda text: text)
        self.cards.write_text(CARDS)

    def script(self, change: Callable[[str], str]) -> None:
        """The example's job_submit.lua, changed."""
        text = (DEPLOY / "job_submit.lua").read_text()
        text = text.replace("/etc/slurm/", f"{self.slurm.folder}/").replace("/run/peakgate/gate.sock", str(self.socket))
        self.slurm.job_submit(change(text))

    def comment(self, number: int, text: str) -> None:
        """Writes the AdminComment of a job."""
        assert self.slurm.run("scontrol", "update", f"jobid={number}", f"admincomment={text}", user="root").returncode == 0

    def checks(self, server: str = "") -> Checked:
        """By name."""
        return {check.name: check for check in slurm_checks(cards=self.cards, server=server, socket=None)}

    def bad(self, server: str = "") -> Checked:
        """Those that are wrong; each has a remedy."""
        found = {name: check for name, check in self.checks(server).items() if check.state is State.bad}
        assert all(check.remedy for check in found.values())
        return found


@contextlib.contextmanager
def gate(path: Path) -> Iterator[None]:
    """A real gate."""
    command = [str(PEAKGATE), "gate", "--socket", str(path), "--no-beside"]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    try:
        yield
    finally:
        process.terminate()
        process.communicate(timeout=20)


@contextlib.contextmanager
def false_gate(path: Path, reply: bytes | None) -> Iterator[None]:
    """Takes connections and sends this; None: sends nothing and holds them."""
    held: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                if reply is None:
                    held.append(connection)
                    continue
                connection.recv(4096)
                connection.sendall(reply)
                connection.close()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=serve, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()
    path.unlink()


def report(target: str, *cards: tuple[str, str, int], cluster: str = "testcluster") -> None:
    """What agents of nodes saw (node, name, memory)."""
    with connect(target) as client:
        for node, name, total in cards:
            peak = pb.PeakSample(node=node, gpu_uuid=f"GPU-{total:012}", gpu_name=name, gpu_total_bytes=total, job="7", peak_bytes=1e9)
            info = pb.NodeInfo(cluster=cluster, node=node, boot_id="b")
            assert client.report_peaks(pb.ReportPeaksRequest(node=info, peaks=[peak])).stored == 1


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """Where a service listens that has heard of nothing yet."""
    with open_embedded(f"sqlite:///{tmp_path / 'service.sqlite3'}") as target:
        yield target


def test_a_whole_installation(site: Site, service: str) -> None:
    """Nothing is wrong; what an administrator may want to know is a note, and the command's status is 0."""
    report(service, ("h100n1", "NVIDIA H100 80GB HBM3", H100), ("a100n1", "NVIDIA A100-SXM4-80GB", A100_80))
    with gate(site.socket):
        number = job_number(site.slurm.sbatch("true", "--gres=gpu:1"))
        site.comment(number, "peakgate=abc")
        checks = site.checks(service)
        words = ["slurm", "doctor", f"--server={service}", f"--cards={site.cards}", "--output=json"]
        done = site.slurm.run(PEAKGATE, *words, user="root", env={"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    assert {name: check.state.value for name, check in checks.items()} == {
        "slurm": "ok",
        "plugin": "ok",
        "plugin file": "ok",
        "script": "ok",
        "script runs": "ok",
        "module": "ok",
        "luasocket": "ok",
        "socket": "ok",
        "gate": "ok",
        "service": "ok",
        "clock": "ok",
        "cluster": "ok",
        "agents": "note",
        "cards": "ok",
        "jobs": "ok",
        "accounting": "note",
        "submit host": "ok",
    }
    assert str(site.socket) in checks["module"].found
    assert "stamps admin_comment" in checks["module"].found
    assert checks["agents"].found == "nothing was heard of h100n2,mign1,oddn1,oldn1 (4 of 6)"
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row["name"] for row in json.loads(done.stdout)} == set(checks)


@pytest.mark.parametrize(
    ("change", "want", "found"),
    [
        (lambda text: text + "\nthis is no Lua", "script runs", "expected near 'this'"),
        (lambda text: "error('at load')\n" + text, "script runs", "at load"),
        (lambda text: text.replace("slurm_job_modify", "slurm_job_modfy"), "script runs", "slurm_job_modify missing"),
        (lambda text: text.replace("return slurm.SUCCESS\n", "return slurm.ERROR\n"), "script runs", "it returns -1"),
        (lambda text: "while true do end\n" + text, "script runs", "does not end within"),
        (lambda text: text.replace('pcall(require, "peakgate")', "false, 'left out'"), "module", "left out"),
        (lambda text: text.replace('"peakgate"', '"peakgat"'), "module", "module 'peakgat' not found"),
        (lambda text: "package.preload['socket.unix'] = function() error('none') end\n" + text, "luasocket", "admitted unchecked"),
    ],
    ids=["syntax", "load", "function", "status", "loop", "not required", "not found", "luasocket"],
)
def test_a_broken_hook(site: Site, change: Callable[[str], str], want: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step that fails is named, in Lua's own words."""
    monkeypatch.setattr("peakgate.hooks.slurm.doctor.hook.LUA_SECONDS", 1.0)
    site.script(change)
    bad = site.bad()
    assert next(iter(bad)) == want, bad
    assert found in bad[want].found


def test_a_hook_that_is_not_there(site: Site) -> None:
    """Neither the script nor the module."""
    (site.slurm.folder / "peakgate.lua").unlink()
    assert "peakgate.lua cannot be loaded" in site.bad()["module"].found
    (site.slurm.folder / "job_submit.lua").unlink()
    bad = site.bad()
    assert "No such file" in bad["script"].found
    assert "module" not in bad


def test_hook_and_gate_of_two_releases(site: Site) -> None:
    """They would not understand each other."""
    text = (DEPLOY / "peakgate.lua").read_text().replace("local VERSION = 1", "local VERSION = 9")
    site.slurm.write("peakgate.lua", text)
    assert "speaks version 9, the gate 1" in site.bad()["module"].found


def test_a_gate_that_is_away(site: Site) -> None:
    """No socket, or one that nobody listens at, or something else in its place."""
    assert "No such file" in site.bad()["socket"].found
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(site.socket))
    assert "Connection refused" in site.bad()["gate"].found
    site.socket.unlink()
    site.socket.write_text("")
    assert "is no socket" in site.bad()["socket"].found


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        (None, "does not answer within"),
        (b"what?\nEND\n", "no answer: what?"),
        (b"", "the connection is cut"),
        (b"x" * 20_000, "no answer: x"),
    ],
    ids=["hung", "garbage", "cut", "endless"],
)
def test_a_gate_that_is_ill(site: Site, reply: bytes | None, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is ill, the doctor does not hang on it."""
    monkeypatch.setattr("peakgate.hooks.slurm.doctor.gate.PATIENCE_SECONDS", 0.5)
    with false_gate(site.socket, reply):
        began = time.monotonic()
        bad = site.bad()
        assert time.monotonic() - began < 5
    assert found in bad["gate"].found


def test_jobs_that_went_unchecked(site: Site) -> None:
    """The controller's own stamp says that the gate did not answer; another program's comment wipes it."""
    assert site.slurm.sbatch("true", "--gres=gpu:1").returncode == 0
    with gate(site.socket):
        check = site.bad()["jobs"]
        assert " admitted unchecked" in check.found
        assert " 0 admitted" not in check.found
        assert "did not answer for the newest" in check.remedy
        number = job_number(site.slurm.sbatch("true", "--gres=gpu:1"))
        site.comment(number, "JS1:H4sI")
        assert "jobstats" in site.bad()["stamp"].found
        site.comment(number, "peakgate=abc")  # Slurm keeps the job for later tests
        assert {"stamp", "jobs"} & set(site.bad()) == set()


def test_agents_that_say_something_else(site: Site, service: str) -> None:
    """Another name of the cluster, another card than the table says."""
    report(service, ("h100n1.example.org", "NVIDIA H100 80GB HBM3", H100), cluster="other")
    bad = site.bad(service)
    assert "agents on this cluster's nodes call it other, Slurm testcluster" in bad["cluster"].found
    site.cards.write_text(CARDS + f"- {{type: h100, memory_bytes: {A100_40}}}\n")
    report(service, ("h100n1", "NVIDIA H100 80GB HBM3", H100))
    assert "agents report 79.6 GiB (NVIDIA H100 80GB HBM3) in h100n1, the table says 40.0 GiB" in site.bad(service)["cards"].found


def test_a_service_that_is_away(site: Site) -> None:
    """What can be said without it is still said."""
    checks = site.checks("127.0.0.1:9")
    assert checks["service"].state is State.bad
    assert checks["cards"].state is State.ok


def test_a_card_by_a_name_that_the_service_does_not_know(site: Site, service: str) -> None:
    """Another name for a card, and a slice of one, are names; a slip of the pen would leave every job there unjudged."""
    site.cards.write_text(CARDS + "- {type: h100, nodes: x1, gpu: H100-80GB}\n- {type: g, nodes: x2, gpu: a100-80gb/3g.40gb}\n")
    assert "card names" not in site.bad(service)
    site.cards.write_text(CARDS + "- {type: h100, gpu: h10-80gb}\n")
    found = site.bad(service)["card names"]
    assert ("names h10-80gb, which" in found.found, "catalog gpus" in found.remedy) == (True, True)


def test_cards_that_nobody_knows(site: Site) -> None:
    """Without a table: which they are; with one that is none: why; with one of another cluster: whose."""
    site.cards.unlink()
    assert "1g.10gb is no card" in site.bad()["cards"].found
    site.cards.write_text("cards: [7]")
    assert "cards[0] is no mapping" in site.bad()["cards"].found
    site.cards.write_text("cluster: other\n" + CARDS)
    assert "is of cluster other" in site.bad()["cards"].found


def test_no_controller(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One check, which says so."""
    monkeypatch.setenv("SLURM_CONF", "/nonexistent/slurm.conf")
    assert [(check.name, check.state) for check in site.checks().values()] == [("slurm", State.bad)]
