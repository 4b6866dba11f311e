"""The other verbs of the command, with the service inside it or a database behind it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.integration.cli import EXAMPLES, peakgate
from tests.unit.client.snapshots import a_snapshot, written

TEXTBOOK = EXAMPLES / "textbook-1.3b.yaml"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """URL of a fresh SQLite file."""
    return f"sqlite:///{tmp_path}/peakgate.sqlite3"


def test_suggest_ranks_fixes() -> None:
    """FlashAttention comes first and fits; the largest micro-batch and the smallest card are named."""
    done = peakgate("suggest", TEXTBOOK, "--output", "json")
    advice = json.loads(done.out)
    assert done.status == 1
    assert advice["suggestions"][0]["changes"] == {"attention.implementation": "flash"}
    assert 1 <= advice["largest_micro_batch_size"] < 8
    assert advice["smallest_gpu"]


def test_the_largest_micro_batch_is_the_largest(tmp_path: Path) -> None:
    """What suggest names fits, and one more does not."""
    largest = json.loads(peakgate("suggest", TEXTBOOK, "--output", "json").out)["largest_micro_batch_size"]
    text = TEXTBOOK.read_text()
    for size, want in ((largest, 0), (largest + 1, 1)):
        path = tmp_path / f"{size}.yaml"
        path.write_text(text.replace("micro_batch_size: 8", f"micro_batch_size: {size}"))
        assert peakgate("predict", path).status == want


def test_suggest_inverts_a_field() -> None:
    """--solve gives the extreme value of a field that fits and says which extreme it is, and refuses another field."""
    done = peakgate("suggest", TEXTBOOK, "--solve", "batch.sequence_length", "--output", "json")
    advice = json.loads(done.out)
    assert advice["solved_field"] == "batch.sequence_length"
    assert 0 < advice["solved_value"] < 2048
    assert advice["solved_limit"] == "largest"
    assert peakgate("suggest", TEXTBOOK, "--solve", "attention.implementation").status == 2


def test_suggest_inverts_a_fraction(tmp_path: Path) -> None:
    """A field that is no integer has its number apart; the value that is named fits."""
    path = tmp_path / "job.yaml"
    path.write_text(TEXTBOOK.read_text().replace("micro_batch_size: 8", "micro_batch_size: 5") + "\nloss: {create_graph_factor: 1.0}\n")
    done = peakgate("suggest", path, "--solve", "loss.create_graph_factor", "--output", "json")
    advice = json.loads(done.out)
    assert (done.status, advice["solved_limit"], advice["solved_value"]) == (0, "largest", 0)
    assert 1 < advice["solved_number"] < 2


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["--keep", "batch", "--solve", "batch.micro_batch_size"], "keep: batch holds it"),
        (["--keep", "paralelism"], "did you mean parallelism"),
        (["--allow", "numeric"], "did you mean numerics"),
        (["--allow", "batch", "--keep", "batch"], "keep: batch forbids it"),
        (["--solve", "batch.micro_batch_sise"], "did you mean batch.micro_batch_size"),
    ],
)
def test_a_contradiction_names_both_sides(arguments: list[str], want: str) -> None:
    """As bad input, before anything is searched."""
    done = peakgate("suggest", TEXTBOOK, *arguments)
    assert done.status == 2
    assert want in done.err


def test_a_small_job_is_told_what_it_wastes() -> None:
    """Predict says what stays free and which share would do; suggest names the card on offer, the smallest one and the micro-batch."""
    job = EXAMPLES / "llama-2-7b-qlora.yaml"
    (answer,) = peakgate("predict", job, "--output", "jsonl").objects
    assert "stay free" in str(answer["notes"])
    assert "gpu-fraction" in str(answer["notes"])
    done = peakgate("suggest", job, "--output", "json", PEAKGATE_GPU_PRICES="h100-80gb=2.5,l4=0.6,t4=0.3")
    advice = json.loads(done.out)
    assert (done.status, advice["cheapest_gpu"]) == (0, "l4-24gb")  # the T4 is cheaper and too small
    assert 0 < advice["memory_fraction"] < 0.5
    assert advice["smallest_gpu"] in advice["notes"][0]


def test_a_bad_price_ends_the_command() -> None:
    """With the variable, the name and the nearest one; so does a server at its start."""
    for arguments in (["suggest", TEXTBOOK], ["serve", "--port", "0", "--http-port", "0"]):
        done = peakgate(*arguments, PEAKGATE_GPU_PRICES="h100-80bg=2.5")
        assert done.status == 2
        assert "PEAKGATE_GPU_PRICES: unknown GPU 'h100-80bg'; did you mean h100-80gb" in done.err


def test_explain_writes_a_page(tmp_path: Path) -> None:
    """The text shows the step and the rank; the page stands alone."""
    done = peakgate("explain", TEXTBOOK, "--html", tmp_path / "page.html")
    assert done.status == 0
    assert "One training step" in done.out
    assert "|forward" in done.out
    assert "Worst rank" in done.out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "http" not in re.sub(r"\s", "", page)


def test_a_stored_prediction_is_found_again(database: str) -> None:
    """With --db a prediction has a name, `jobs` lists it, and `explain` shows it by its name."""
    (answer,) = peakgate("predict", TEXTBOOK, "--db", database, "--output", "jsonl").objects
    name = str(answer["prediction"])
    assert name.startswith("predictions/")
    (row,) = peakgate("jobs", "--db", database, "--output", "jsonl").objects
    assert row["prediction"] == name
    assert row["job_name"] == "textbook-1.3b"
    for each in (name, name.removeprefix("predictions/")):
        assert peakgate("explain", each, "--db", database).out.startswith(f"REJECT  {name}")


def test_a_brief_answer_has_its_name(database: str) -> None:
    """Of one job and of several: it is what a launch script passes on."""
    for jobs in ([TEXTBOOK], [TEXTBOOK, TEXTBOOK]):
        done = peakgate("predict", *jobs, "--brief", "--db", database)
        assert len(re.findall(r"tored as predictions/[0-9a-f]{32}", done.out)) == len(jobs)


@pytest.mark.parametrize("verb", ["suggest", "explain"])
def test_every_verb_names_every_bad_field(verb: str, tmp_path: Path) -> None:
    """What the document's form forbids, what has no meaning and what is unknown, in one error."""
    path = tmp_path / "job.yaml"
    path.write_text("model: {preset: gpt-two}\ngpus: 8\nattention: {implementation: flsh}\n")
    done = peakgate(verb, path, "--output", "json")
    assert done.status == 2
    assert {each["field"] for each in json.loads(done.out)["error"]["fields"]} == {"gpus", "attention.implementation", "model.preset"}


def test_without_a_database_nothing_is_kept() -> None:
    """The service inside the command stores nothing by itself: the answer has no name, and who looks for one is told why."""
    (answer,) = peakgate("predict", TEXTBOOK, "--output", "jsonl").objects
    assert answer["prediction"] == ""
    for arguments in (["jobs"], ["explain", "predictions/1"]):
        done = peakgate(*arguments)
        assert done.status == 2
        assert "neither a service nor a database is named" in done.err


def test_an_empty_database_has_an_empty_list(database: str) -> None:
    """That is no mistake."""
    assert peakgate("jobs", "--db", database).out == "No predictions are stored yet.\n"


def test_an_unknown_prediction_is_bad_input(database: str) -> None:
    """A name that was never given is status 2."""
    peakgate("predict", TEXTBOOK, "--db", database)
    assert peakgate("explain", "predictions/nobody", "--db", database).status == 2


@pytest.mark.parametrize(("table", "want"), [("models", "llama-3.1-8b"), ("gpus", "h100-80gb"), ("defaults", "optimizer.name")])
def test_the_catalogue(table: str, want: str) -> None:
    """Each table is shown to people, and row by row to programs, with the source of every row."""
    assert want in peakgate("catalog", table).out
    rows = peakgate("catalog", table, "--output", "jsonl").objects
    assert len(rows) >= 20
    assert all(row["source"] for row in rows)


def test_the_schema_is_a_json_schema() -> None:
    """It describes the fields of the document."""
    schema = json.loads(peakgate("schema").out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "batch" in schema["properties"]


def test_the_database_is_upgraded_twice(database: str) -> None:
    """A second upgrade changes nothing; without a database the error says how to name one."""
    assert peakgate("db", "upgrade", "--db", database).status == 0
    assert peakgate("db", "upgrade", "--db", database).status == 0
    done = peakgate("db", "upgrade")
    assert done.status == 2
    assert "PEAKGATE_DATABASE_URL" in done.err


def test_the_check_up_passes_here(database: str) -> None:
    """Every check of a sound installation is ok or a note."""
    done = peakgate("doctor", "--db", database, "--output", "jsonl")
    assert done.status == 0
    assert {"python", "grpcio", "protobuf", "pynvml", "nvml", "clock", "service", "database"} <= {str(row["name"]) for row in done.objects}


def test_the_check_up_finds_an_absent_service() -> None:
    """A service that is not there makes the check-up fail and is named with the remedy."""
    done = peakgate("doctor", "--server", "127.0.0.1:1")
    assert done.status == 1
    assert "peakgate serve" in done.out


@pytest.mark.skipif(shutil.which("cc") is None, reason="the simulated NVML needs a C compiler: apt-get install gcc libc6-dev")
def test_the_self_test_of_a_node(tmp_path: Path) -> None:
    """On a healthy node every check is ok and the status 0; a GPU that does not answer is bad and 1; a scenario that is none is 2."""
    done = peakgate("doctor", "--selftest", "--simulate", "healthy", "--output", "jsonl")
    assert (done.status, {row["state"] for row in done.objects}) == (0, {"ok"})
    assert {"binding", "opens", "memory", "lists", "pids", "accounting", "mig", "events", "call times"} <= {
        row["name"] for row in done.objects
    }
    lost = tmp_path / "lost.scn"
    lost.write_text("gpu 0 uuid=GPU-a total=80G\ngpu 1 uuid=GPU-b total=80G\nerror 15 gpu=1\n")
    done = peakgate("doctor", "--selftest", "--simulate", str(lost))
    assert done.status == 1
    assert re.search(r"^bad +gpus .*another does not\n +→ run nvidia-smi", done.out, re.MULTILINE)
    assert peakgate("doctor", "--selftest", "--simulate", "nowhere").status == 2
    assert peakgate("doctor", "--simulate", "healthy").status == 2


def test_the_self_test_says_that_there_is_no_nvml(tmp_path: Path) -> None:
    """A machine to submit from is no fault: a note, and status 0."""
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    done = peakgate("doctor", "--selftest", "--output", "jsonl", LD_LIBRARY_PATH=str(tmp_path))
    assert done.status == 0
    assert [(row["name"], row["state"]) for row in done.objects] == [("binding", "ok"), ("opens", "note")]


def test_every_verb_reports_errors_alike() -> None:
    """A service that is away is an error object for a program, a line with the remedy for a person, and status 4."""
    done = peakgate("jobs", "--output", "json", "--server", "127.0.0.1:1")
    assert done.status == 4
    assert json.loads(done.out)["error"]["code"] == "UNAVAILABLE"
    assert "peakgate serve" in done.err


@pytest.mark.parametrize("url", ["sqlite:////proc/nowhere/p.sqlite3", "nonsense"])
def test_a_database_that_cannot_be_used_is_status_4(url: str) -> None:
    """The error names the database and what to do; it is no verdict and no traceback."""
    done = peakgate("predict", TEXTBOOK, "--db", url, "--output", "jsonl")
    assert done.status == 4
    assert done.objects[0]["error"]["reason"] == "STORE_UNAVAILABLE"
    assert "Traceback" not in done.err


def test_an_agent_without_its_scenario_says_which_there_are() -> None:
    """The agent's options reach it: an unknown scenario is bad usage, and the known ones are named."""
    done = peakgate("agent", "--simulate", "nowhere", "--server", "127.0.0.1:1", "--once")
    assert done.status == 2
    assert "demo" in done.err


def test_the_version_is_shown() -> None:
    """--version is the distribution's."""
    assert re.fullmatch(r"peakgate \d+\.\d+\.\d+\n", peakgate("--version").out)


def test_a_snapshot_of_a_run_becomes_a_job(tmp_path: Path) -> None:
    """`probe` writes the profile that a job names by its path; a job that says more than is known of the run is undecided."""
    probed = peakgate("probe", written(tmp_path, a_snapshot()), "--micro-batch-size", "4", "--out", tmp_path / "run.json")
    assert (probed.status, probed.out) == (0, "")
    job = {"model": {"profile": "run.json"}, "batch": {"micro_batch_size": 4}, "gpu": {"type": "a100-40gb"}}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    assert peakgate("predict", "job.yaml", folder=tmp_path).status == 0
    (tmp_path / "job.yaml").write_text(json.dumps(job | {"optimizer": {"name": "adamw"}}))
    assert peakgate("predict", "job.yaml", folder=tmp_path).status == 3


def test_a_rejected_job_may_be_tried(database: str) -> None:
    """Exit status 0 when it is granted, and the list of who was; 1 without a user, and when the budget is spent; 2 without a reason."""
    tried = ("predict", TEXTBOOK, "--brief", "--db", database, "--try", "the paper says it fits")
    assert peakgate(*tried).status == 1
    for _ in range(3):
        done = peakgate(*tried, "--user", "c/1000", "--output", "jsonl")
        assert (done.status, done.objects[0]["verdict"], done.objects[0]["try_anyway"]["granted"]) == (0, "REJECT", True)
    done = peakgate(*tried, "--user", "c/1000")
    assert done.status == 1
    assert "c/1000 has used all tries of 24 hours (3); the next one is free at" in done.out
    assert peakgate("predict", TEXTBOOK, "--db", database, "--user", "c/1000", "--try", " ").status == 2
    rows = peakgate("jobs", "--tries", "--db", database, "--output", "jsonl").objects
    found = [(row["user"], row["tried"]["reason"], row["tried"]["outcome"]) for row in rows]
    assert found == [("c/1000", "the paper says it fits", "unknown")] * 3
    shown = peakgate("jobs", "--tries", "--db", database).out
    assert shown.count("the paper says it fits") == 3
    assert shown.count("unknown yet") == 3
    assert "Submitted by c/1000" in peakgate("explain", rows[0]["prediction"], "--db", database).out


def test_without_a_database_nothing_is_granted() -> None:
    """A try that nobody would find again is none."""
    done = peakgate("predict", TEXTBOOK, "--brief", "--user", "c/1000", "--try", "it fits")
    assert done.status == 1
    assert "nothing is stored of this request" in done.out


def test_the_operators_budget_holds_inside_the_command(database: str) -> None:
    """Also where the command is the service."""
    tried = ("predict", TEXTBOOK, "--brief", "--db", database, "--user", "c/1000", "--try", "it fits")
    done = peakgate(*tried, PEAKGATE_TRIES_PER_DAY="0")
    assert done.status == 1
    assert "the operator allows no tries" in done.out
