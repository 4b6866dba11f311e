"""Peaks that Slurm and Prometheus recorded reach the margin by the command, once, and through an agent's door."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from tests.integration.cli import EXAMPLES, peakgate
from typer.testing import CliRunner

from peakgate.client.app import app_for
from peakgate.client.connect import open_client
from peakgate.client.errors import PeakgateError
from peakgate.v1.document import parse_job
from peakgate.v1.prediction_pb2 import PredictResponse

NAMES = "JobID|State|ExitCode|Start|End|NTasks|AllocTRES|TRESUsageInMax|TRESUsageInMaxNode|TRESUsageInMaxTask|AdminComment|Comment"
START, END = 1_760_000_000, 1_760_003_600
MIB = 1 << 20
UUID = "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """URL of a fresh SQLite file."""
    return f"sqlite:///{tmp_path}/peakgate.sqlite3"


@pytest.fixture
def predicted(database: str) -> PredictResponse:
    """A stored prediction."""
    job = yaml.safe_load((EXAMPLES / "textbook-1.3b.yaml").read_text())
    job["batch"]["micro_batch_size"], job["framework"]["name"] = 4, "deepspeed"
    with open_client(db=database) as client:
        return client.predict(parse_job(job))


def run(*arguments: object) -> str:
    """Standard output of the command in this process, where a start costs nothing. Raises what it raises."""
    words = [str(each) for each in arguments]
    done = CliRunner().invoke(app_for(words), words)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def accounting(*jobs: tuple[str, str, int, str], state: str = "COMPLETED") -> str:
    """sacct's output of (job, GPU memory, GPUs of the only task, admin comment)."""
    lines = [NAMES]
    for job, memory, gpus, comment in jobs:
        tres = f"cpu=8,gres/gpu={gpus},mem=64G,node=1"
        lines.append(f"{job}|{state}|0:0|{START}|{END}||{tres}||||{comment}|")
        lines.append(
            f"{job}.batch|{state}|0:0|{START}|{END}|1|{tres}|cpu=00:01:00,gres/gpumem={memory},mem=9K|cpu=n1,gres/gpumem=n1|gres/gpumem=0||"
        )
    return "\n".join(lines) + "\n"


def rows(tmp_path: Path) -> list[Any]:
    """Everything in the database that an import can touch, but for its times of writing."""
    with sqlite3.connect(tmp_path / "peakgate.sqlite3") as connection:
        tables = ("peaks", "phase_peaks", "job_events", "observations", "calibrations", "predictions")
        found = [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4").fetchall() for table in tables]
    connection.close()
    return found


def fates(text: str) -> list[tuple[str, str, str]]:
    """(job, fate, kind) of each job of an import."""
    return [(each["job"], each["fate"], each["kind"]) for each in json.loads(text)]


def test_slurms_accounting_teaches_the_margin_once(predicted: PredictResponse, database: str, tmp_path: Path) -> None:
    """One job is learned, one is too small to be the one that was predicted, one names a prediction that nobody knows, one names none.

    A second run of the same file leaves every row as it was.
    """
    name, device = predicted.prediction, predicted.peak.device_bytes
    as_predicted, too_small = f"{device // 1024}K", f"{device // 5 // 1024}K"
    jobs = (("1", as_predicted, 1, f"peakgate={name}"), ("2", too_small, 1, f"peakgate={name}"))
    others = (("3", as_predicted, 1, "peakgate=forged"), ("4", as_predicted, 1, "nothing"), ("5", as_predicted, 8, f"peakgate={name}"))
    path = tmp_path / "usage.txt"
    path.write_text(accounting(*jobs, *others))
    arguments = ("calibration", "import", "sacct", path, "--db", database, "--output", "json")
    assert fates(run(*arguments)) == [
        ("1", "learned", "exact"),
        ("2", "kept out", "dropped"),
        ("3", "not joined", ""),
        ("4", "not joined", ""),
        ("5", "learned", "lower"),
    ]
    before = rows(tmp_path)
    assert [fate for _, fate, _ in fates(run(*arguments))] == ["left out", "left out", "not joined", "not joined", "left out"]
    assert rows(tmp_path) == before


def test_what_was_imported_is_told_in_the_list(predicted: PredictResponse, database: str, tmp_path: Path) -> None:
    """Its source, its class and where it was seen; the observed peak is that of one GPU, not Slurm's sum."""
    device = predicted.peak.device_bytes
    path = tmp_path / "usage.txt"
    path.write_text(accounting(("1", f"{device * 4 // 1024}K", 4, f"peakgate={predicted.prediction}")))
    text = run("calibration", "import", "sacct", path, "--db", database)
    assert "1 jobs: 1 learned" in text
    assert "AVERAGED" in text
    (listed,) = json.loads(run("jobs", "--db", database, "--output", "json"))
    observation = listed["observation"]
    want = ("lower", "slurm", "D", "sacct", "n1", "AVERAGED")
    assert tuple(observation[key] for key in ("kind", "source", "confidence", "origin", "node", "reason")) == want
    assert abs(int(listed["observed_device_bytes"]) - device) <= 1024
    assert "lower: AVERAGED, slurm (D)" in run("jobs", "--db", database)


def test_a_figure_that_an_agent_may_not_send_is_refused_here_too(predicted: PredictResponse, database: str, tmp_path: Path) -> None:
    """The same door: more than any card has is another unit."""
    path = tmp_path / "usage.txt"
    path.write_text(accounting(("1", "2048T", 1, f"peakgate={predicted.prediction}")))
    done = run("calibration", "import", "sacct", path, "--db", database, "--output", "json")
    assert fates(done) == [("1", "left out", "")]
    assert "PEAK_INVALID" in json.loads(done)[0]["why"]


def test_a_host_that_ran_out_of_memory_is_no_gpu_that_did(predicted: PredictResponse, database: str, tmp_path: Path) -> None:
    """OUT_OF_MEMORY is of the node's RAM: a lower end at what was in use, not at the whole card."""
    device = predicted.peak.device_bytes
    path = tmp_path / "usage.txt"
    path.write_text(accounting(("1", f"{device // 1024}K", 1, f"peakgate={predicted.prediction}"), state="OUT_OF_MEMORY"))
    assert fates(run("calibration", "import", "sacct", path, "--db", database, "--output", "json")) == [("1", "learned", "lower")]
    (listed,) = json.loads(run("jobs", "--db", database, "--output", "json"))
    assert (listed["state"], listed["observation"]["reason"]) == ("failed", "CUT_SHORT")
    assert int(listed["observation"]["lower_bytes"]) < device


@pytest.mark.parametrize(
    ("arguments", "want_status", "want_word"),
    [
        (("sacct", "/nowhere/usage.txt"), 2, "cannot be read"),
        (("sacct", EXAMPLES / "textbook-1.3b.yaml"), 2, "TRESUsageInMax"),
        (("prometheus", "file:///etc/passwd"), 2, "no address of a Prometheus"),
        (("prometheus", "http://127.0.0.1:9/", "--timeout", "2"), 4, "Prometheus"),
        (("prometheus", "http://127.0.0.1:9/", "--since", "soon"), 2, "no time"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(arguments: tuple[object, ...], want_status: int, want_word: str, database: str) -> None:
    """2 for the input, 4 for a Prometheus that is away."""
    with pytest.raises(PeakgateError, match=want_word) as caught:
        run("calibration", "import", *arguments, "--db", database)
    assert caught.value.exit_status == want_status


class _Prometheus(BaseHTTPRequestHandler):
    """Answers /api/v1/query_range with the points of its series that lie in the window, as Prometheus 3 writes them."""

    series: ClassVar[list[tuple[dict[str, str], list[tuple[int, float]]]]] = []
    queries: ClassVar[list[dict[str, list[str]]]] = []
    status: ClassVar[int] = 200

    def do_GET(self) -> None:
        """One range query."""
        address = urlsplit(self.path)
        words = parse_qs(address.query)
        self.queries.append(words)
        start, end = float(words["start"][0]), float(words["end"][0])
        result = []
        for labels, points in self.series:
            values = [[moment, str(value)] for moment, value in points if start <= moment <= end]
            result += [{"metric": labels, "values": values}] if values else []
        found = address.path == "/api/v1/query_range"
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
        self.send_response(self.status if found else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def a_prometheus(series: list[tuple[dict[str, str], list[tuple[int, float]]]], *, status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    """A server on a free port that knows these series; its address, and the queries that it is asked."""
    queries: list[Any] = []
    handler = type("Handler", (_Prometheus,), {"series": series, "queries": queries, "status": status})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", queries
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def a_series(device_bytes: int, job: str = "1") -> tuple[dict[str, str], list[tuple[int, float]]]:
    """One GPU over two days, which is two queries; the peak is in the second."""
    labels = {"__name__": "DCGM_FI_DEV_FB_USED", "UUID": UUID, "gpu": "0", "Hostname": "n1", "modelName": "H100", "hpc_job": job}
    first = START // 60 * 60
    return labels, [(first + minute * 60, device_bytes / MIB * (0.5 if minute < 2000 else 1.0)) for minute in range(0, 2880, 10)]


def test_a_prometheus_teaches_the_margin_once(predicted: PredictResponse, database: str, tmp_path: Path) -> None:
    """With the accounting's word on how the job ended; asked for day by day, and a second run leaves every row as it was."""
    device = predicted.peak.device_bytes
    jobs = tmp_path / "usage.txt"
    jobs.write_text(accounting(("1", "0", 1, f"peakgate={predicted.prediction}")))
    with a_prometheus([a_series(device), (a_series(device, job="2")[0], [(START + 3 * 86_400, 9.0)])]) as (url, queries):
        window = ("--since", START, "--until", START + 4 * 86_400)
        arguments = ("calibration", "import", "prometheus", url, *window, "--jobs", jobs, "--db", database, "--output", "json")
        assert fates(run(*arguments)) == [("1", "learned", "exact"), ("2", "not joined", "")]
        before = rows(tmp_path)
        assert [fate for _, fate, _ in fates(run(*arguments))] == ["left out", "not joined"]
    assert rows(tmp_path) == before
    assert len(queries) == 10
    assert queries[0]["query"] == ["max_over_time(DCGM_FI_DEV_FB_USED{}[60s])"]
    (listed,) = json.loads(run("jobs", "--db", database, "--output", "json"))
    assert (listed["observation"]["source"], listed["observation"]["gpu_uuid"]) == ("prometheus", UUID)
    assert abs(int(listed["observation"]["observed_bytes"]) - device) < MIB


def test_without_a_word_on_how_it_ended_a_peak_is_a_lower_end(predicted: PredictResponse, database: str, tmp_path: Path) -> None:
    """Prometheus does not know whether the job failed."""
    jobs = tmp_path / "jobs.txt"
    jobs.write_text(f"1 {predicted.prediction}\n")
    with a_prometheus([a_series(predicted.peak.device_bytes)]) as (url, _):
        arguments = ("--since", START, "--until", START + 4 * 86_400, "--jobs", jobs, "--db", database, "--output", "json")
        assert fates(run("calibration", "import", "prometheus", url, *arguments)) == [("1", "learned", "lower")]


def test_a_prometheus_that_refuses_is_told_in_its_own_words(database: str) -> None:
    """With its status; nothing is imported."""
    with a_prometheus([], status=503) as (url, _):
        done = peakgate("calibration", "import", "prometheus", url, "--since", START, "--until", START + 60, "--db", database)
    assert (done.status, "HTTP 503" in done.err) == (4, True)
