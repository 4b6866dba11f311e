"""`peakgate predict` with the service inside the command: exit statuses, JSON, JSON Lines, bad input."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from tests.integration.cli import EXAMPLES, PEAKGATE, peakgate

TEXTBOOK = EXAMPLES / "textbook-1.3b.yaml"
FLASH = EXAMPLES / "textbook-1.3b-flash.yaml"
GB = 1e9


def a_document(**fields: object) -> dict[str, object]:
    """A small job that fits on one H100, with what a test is about."""
    model = {"transformer": {"block": "llama", "layers": 2, "hidden_size": 256, "heads": 4, "ffn_hidden_size": 512, "vocab_size": 1000}}
    return {
        "model": model,
        "batch": {"micro_batch_size": 1, "sequence_length": 128},
        "gpu": {"type": "h100-80gb"},
        **fields,
    }


def lines(*documents: object) -> str:
    """JSON Lines; a text stands for itself, so that a line may be bad."""
    return "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in documents)


@pytest.mark.parametrize(
    ("name", "want_gb", "want_status"),
    [("textbook-1.3b", 116.1, 1), ("textbook-1.3b-flash", 51.7, 0), ("textbook-1.3b-flash-checkpointed", 27.0, 0)],
)
def test_the_textbook_job(name: str, want_gb: float, want_status: int) -> None:
    """The worked example's three settings give 116.1, 51.7 and 27.0 GB; the first does not fit on 80 GB."""
    done = peakgate("predict", EXAMPLES / f"{name}.yaml", "--output", "jsonl")
    (answer,) = done.objects
    assert round(answer["peak"]["allocated_bytes"] / GB, 1) == want_gb
    assert done.status == want_status


def test_a_rejection_says_why_and_what_to_change() -> None:
    """The reason starts with the category that is too large; the first suggestion is FlashAttention, and it fits."""
    done = peakgate("predict", TEXTBOOK, "--output", "json")
    answer = json.loads(done.out)
    assert answer["verdict"] == "REJECT"
    assert answer["reason"].startswith("activations")
    first = answer["suggestions"][0]
    assert first["changes"] == {"attention.implementation": "flash"}
    assert first["fits"]
    assert sum(line["bytes"] for line in answer["ledger"]) == answer["peak"]["device_bytes"]


def test_the_block_is_for_people() -> None:
    """Without --output the answer is text, plain in a pipe, with the fix in it."""
    done = peakgate("predict", TEXTBOOK)
    assert done.out.startswith("REJECT")
    assert "116.1 GB" in done.out
    assert "attention.implementation: flash" in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_answered(path: Path) -> None:
    """Each example of the repository gets a verdict and a peak."""
    done = peakgate("predict", path, "--output", "jsonl")
    assert done.status in (0, 1, 3)
    (answer,) = done.objects
    assert answer["peak"]["allocated_bytes"] > 0


def test_json_lines_answer_in_order_with_errors_in_place() -> None:
    """Each line has its answer or its error object, in order; nothing else is on standard output."""
    stdin = lines(a_document(), "not json", a_document(modle=1), {"name": "x"}, a_document(gpu={"type": "h100-80bg"}), a_document())
    done = peakgate("predict", "-", "--output", "jsonl", stdin=stdin)
    assert done.status == 2
    got = [line.get("verdict") or line["error"]["reason"] for line in done.objects]
    assert got == ["ADMIT", "DOCUMENT_INVALID", "FIELD_INVALID", "FIELD_INVALID", "ACCELERATOR_UNKNOWN", "ADMIT"]


def test_several_hundred_lines_are_quick() -> None:
    """Four hundred jobs over one channel, half of them twice, take seconds; answers stay in order."""
    documents = [a_document(batch={"micro_batch_size": 1, "sequence_length": 64 + n % 200}) for n in range(400)]
    started = time.monotonic()
    answers = peakgate("predict", "-", "--output", "jsonl", stdin=lines(*documents)).objects
    assert time.monotonic() - started < 40
    peaks = [answer["peak"]["allocated_bytes"] for answer in answers]
    assert peaks[:200] == sorted(peaks[:200])
    assert peaks[0] < peaks[199]
    assert peaks[200:] == peaks[:200]


def test_one_line_at_a_time() -> None:
    """A program may write a job, read its answer and only then write the next."""
    command = [str(PEAKGATE), "predict", "-", "--output", "jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            process.stdin.write(lines(a_document()))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["verdict"] == "ADMIT"
        process.stdin.close()
        assert process.wait(30) == 0


def test_of_several_jobs_the_worst_status_wins(tmp_path: Path) -> None:
    """One rejection among jobs that fit is status 1; bad input wins over it; text for people names each file."""
    assert peakgate("predict", FLASH, TEXTBOOK, "--brief").status == 1
    (tmp_path / "bad.yaml").write_text("model: {}\n")
    done = peakgate("predict", TEXTBOOK, tmp_path / "bad.yaml", FLASH, "--brief")
    assert done.status == 2
    assert len(done.out.splitlines()) >= 3


def test_a_job_without_a_card_is_undecided() -> None:
    """All figures are there, and status 3 says that something decisive is missing."""
    done = peakgate("predict", "-", "--output", "jsonl", stdin=lines(a_document(gpu={})))
    (answer,) = done.objects
    assert (answer["verdict"], done.status) == ("UNDECIDED", 3)
    assert answer["peak"]["required_bytes"] > 0


def test_another_card_may_be_asked_about() -> None:
    """--gpu overrides the document's card."""
    done = peakgate("predict", FLASH, "--gpu", "l4-24gb", "--output", "jsonl")
    (answer,) = done.objects
    assert answer["capacity"]["gpu"] == "l4-24gb"
    assert done.status == 1


@pytest.mark.parametrize(
    ("document", "want_fields"),
    [
        (a_document(batch={"micro_batch_size": -1, "sequence_length": 128}), {"batch.micro_batch_size"}),
        (a_document(gpus=1, optimiser={}), {"gpus", "optimiser"}),
        ({"model": {"preset": "a", "parameters": 3}}, {"model"}),
        (a_document(dropout={"hidden": float("nan")}), {"dropout.hidden"}),
        (a_document(batch={"micro_batch_size": 10**30, "sequence_length": 128}), {"batch.micro_batch_size"}),
        (a_document(model={"preset": "lama-3.1-8b"}), {"model.preset"}),
        (a_document(gpu={"type": "h1000-80gb"}), {"gpu.type"}),
        (
            a_document(gpu={"type": "h100-80bg", "cuont": 2}, batch={"micro_batch_size": "x"}, attention={"implementation": "flsh"}),
            {"gpu.type", "gpu.cuont", "batch.micro_batch_size", "attention.implementation"},
        ),
        (a_document(parallelism={"tensor": "two", "pipeline": 3, "world_size": 4}), {"parallelism.tensor"}),
        (
            a_document(model={"preset": "lama", "parameters": True}, dropout={"hidden": 2.0}),
            {"model", "model.parameters", "dropout.hidden"},
        ),
    ],
)
def test_bad_input_names_every_field(document: dict[str, object], want_fields: set[str]) -> None:
    """One error object with each bad field by its path and a description; status 2."""
    done = peakgate("predict", "-", "--output", "jsonl", stdin=lines(document))
    (answer,) = done.objects
    fields = answer["error"]["fields"]
    assert {field["field"] for field in fields} == want_fields
    assert all(field["description"] for field in fields)
    assert done.status == 2


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    """An unknown name comes with the nearest known one."""
    done = peakgate("predict", "-", stdin=lines(a_document(gpu={"type": "h100-80bg"})))
    assert "h100-80gb" in done.out


def test_a_ten_megabyte_document_is_refused(tmp_path: Path) -> None:
    """The error names the limit; the service never sees it."""
    (tmp_path / "big.yaml").write_text("name: " + "x" * 10_000_000)
    done = peakgate("predict", tmp_path / "big.yaml")
    assert done.status == 2
    assert "larger than 1048576 bytes" in done.out


@pytest.mark.parametrize("arguments", [["predict", str(TEXTBOOK)], ["predict", str(TEXTBOOK), "-o", "jsonl"], ["schema"], ["--help"]])
def test_an_answer_that_cannot_be_written_is_no_verdict(arguments: list[str]) -> None:
    """A full disk or a closed standard output: one line on standard error, status 4, no traceback."""
    for redirection in (">/dev/full", ">&-"):
        command = f"{shlex.join([str(PEAKGATE), *arguments])} {redirection}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, len(done.stderr.splitlines())) == (4, 1), done.stderr
        assert done.stderr.startswith("peakgate: the answer cannot be written: ")


def test_a_terminal_without_bars_gets_plain_characters() -> None:
    """An ASCII terminal: nothing fails, bars are drawn with #, and JSON stays JSON."""
    done = peakgate("explain", TEXTBOOK, PYTHONIOENCODING="ascii")
    assert done.status == 0, done.err
    assert done.out.isascii()
    assert "###" in done.out
    line = lines(a_document(name="é█"))
    assert peakgate("predict", "-", "--output", "jsonl", stdin=line, PYTHONIOENCODING="ascii").objects


def test_usage_is_status_2() -> None:
    """No job, an unknown option, and both a server and a database are mistakes of the caller."""
    assert peakgate("predict").status == 2
    assert peakgate("predict", TEXTBOOK, "--colour").status == 2
    assert peakgate("predict", TEXTBOOK, "--server", "localhost:1", "--db", "sqlite:///x").status == 2


def test_a_service_that_is_away_is_status_4() -> None:
    """Nobody listens: the error object stands on standard output, the status is 4."""
    done = peakgate("predict", FLASH, "--output", "jsonl", PEAKGATE_SERVER="127.0.0.1:1")
    assert done.status == 4
    assert done.objects[0]["error"]["code"] == "UNAVAILABLE"


def test_a_reader_that_leaves_is_no_verdict() -> None:
    """`peakgate … | head -1` does not end with the status of a rejection."""
    command = f"{PEAKGATE} predict - --output jsonl 2>/dev/null | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], input=lines(*[a_document()] * 200).encode(), check=False)
    assert done.returncode == 141
