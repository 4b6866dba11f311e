"""deploy/slurm/peakgate.lua: what it sends, and what it does with an answer; under the oldest and the newest Lua."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.hooks.slurm.lua import FOLDER, NO_VAL, NO_VAL16, VERSIONS, Call, Lua, Played, play, program
from tests.unit.hooks.slurm.recording import Recorded, recording_gate

BATCH: dict[str, Lua] = {
    "tres_per_node": "gres:gpu:h100:2",
    "script": "#!/bin/bash\n#SBATCH -N 2\ntorchrun train.py\n",
    "environment": {"PEAKGATE_JOB": "eJw=", "HOME": "/home/ann", "SLURM_PEAKGATE_ATTACHED": "id=1"},
    "min_nodes": 2,
    "max_nodes": NO_VAL,
    "num_tasks": NO_VAL,
    "ntasks_per_node": NO_VAL16,
    "het_job_offset": NO_VAL,
    "name": 'pre\ttrain "1"\\',
}


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Recorded]:
    """A gate that admits as 0123abcd."""
    with recording_gate(tmp_path / "gate.sock") as found:
        yield found


def one(gate: Recorded, call: Call, version: str, **settings: Lua) -> Played:
    """What one call comes to with this gate."""
    return play([call], version=version, settings={"socket": str(gate.path), **settings})[0]


@pytest.mark.parametrize("name", ["peakgate.lua", "job_submit.lua"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_files_are_lua_of_every_version(name: str, version: str) -> None:
    """The compilers of the oldest and of the newest version take them."""
    done = subprocess.run([program("luac", version), "-p", str(FOLDER / name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_only_what_says_something_of_the_job_is_sent(version: str, gate: Recorded) -> None:
    """Fields that are set, the script, and of the environment only what the submit host attached."""
    one(gate, Call(job=BATCH), version)
    assert gate.last == {
        "v": 1,
        "op": "submit",
        "uid": 1001,
        "cluster": "test",
        "default_partition": "gpu",
        "fields": {"tres_per_node": "gres:gpu:h100:2", "min_nodes": 2, "name": 'pre\ttrain "1"\\'},
        "script": BATCH["script"],
        "env": {"PEAKGATE_JOB": "eJw=", "SLURM_PEAKGATE_ATTACHED": "id=1"},
    }


def test_any_bytes_of_a_script_arrive(version: str, gate: Recorded) -> None:
    """Every byte but NUL, which no C string holds; of a long script the first 64 KiB."""
    script = bytes(range(1, 256)).decode("utf-8", "surrogateescape")
    one(gate, Call(job=BATCH | {"script": script}), version)
    assert str(gate.last["script"]).encode("utf-8", "surrogateescape") == bytes(range(1, 256))
    one(gate, Call(job=BATCH | {"script": "#" * 70_000}), version)
    assert gate.last["script"] == "#" * 65_536


@pytest.mark.parametrize("tres", [{}, {"tres_per_node": "gres:nvme:1"}, {"gres": ""}, {"tres_per_job": "license:matlab:2"}])
def test_a_job_without_gpus_asks_nobody(version: str, gate: Recorded, tres: dict[str, Lua]) -> None:
    """CPU-only jobs are admitted without a call, a stamp or a line."""
    found = one(gate, Call(job={"script": "#!/bin/sh\n", **tres}), version)
    assert (found.code, found.says, found.log, gate.requests) == (0, [], [], [])
    assert "admin_comment" not in found.job


@pytest.mark.parametrize(
    "tres",
    [
        {"tres_per_node": "gres:gpu:2"},
        {"tres_per_job": "gres/gpu:h100=4"},
        {"tres_per_task": "gres:gpu:1"},
        {"tres_per_socket": "gres/gpu=1"},
        {"gres": "gpu:1"},
        {"tres_per_node": "gres:nvme:1,gres:shard:2"},
        {"tres_per_node": "gres/mps=50"},
    ],
)
def test_every_way_to_ask_for_a_gpu_is_seen(version: str, gate: Recorded, tres: dict[str, Lua]) -> None:
    """Per node, job, task and socket, before and after 23.11, and fractions."""
    assert one(gate, Call(job=tres), version).code == 0
    assert len(gate.requests) == 1


def test_an_admitted_job_carries_the_prediction(version: str, gate: Recorded) -> None:
    """In AdminComment, and in the environment of a batch job; the lines are shown."""
    gate.reply = "ALLOW 0123abcd\nSAY peakgate: needs 60.0 GB\nEND\n"
    found = one(gate, Call(job=BATCH), version)
    assert (found.code, found.says) == (0, ["peakgate: needs 60.0 GB"])
    assert found.job["admin_comment"] == "peakgate=0123abcd"
    assert found.job["environment.PEAKGATE_PREDICTION"] == "predictions/0123abcd"
    assert re.fullmatch(r"peakgate: uid=1001 admitted 0123abcd in \d+\.\d ms", found.log[0])


def test_a_job_of_srun_has_no_environment(version: str, gate: Recorded) -> None:
    """Its words are sent, and the stamp is all that it gets."""
    job: dict[str, Lua] = {"tres_per_job": "gres:gpu:1", "argc": 2, "argv": ["torchrun", "train.py"]}
    found = one(gate, Call(job=job), version)
    assert gate.last["argv"] == ["torchrun", "train.py"]
    assert found.job["admin_comment"] == "peakgate=0123abcd"


@pytest.mark.parametrize(("word", "want_code"), [("gres", 2072), ("access", 2002), ("another", 2072)])
def test_a_refusal_has_a_code_and_a_reason(version: str, gate: Recorded, word: str, want_code: int) -> None:
    """ESLURM_INVALID_GRES by its number, which 22.05 does not name."""
    gate.reply = f"DENY {word}\nSAY peakgate: too large\nSAY peakgate: halve it\nEND\n"
    found = one(gate, Call(job=BATCH), version)
    assert (found.code, found.says) == (want_code, ["peakgate: too large", "peakgate: halve it"])
    assert "admin_comment" not in found.job


@pytest.mark.parametrize(("field", "want"), [("admin_comment", "peakgate=0123abcd"), ("extra", "peakgate=0123abcd"), ("none", None)])
def test_the_stamp_goes_where_the_site_wants_it(version: str, gate: Recorded, field: str, want: str | None) -> None:
    """AdminComment, Extra or nowhere."""
    assert one(gate, Call(job=BATCH), version, stamp_field=field).job.get(field) == want


@pytest.mark.parametrize(("known", "want"), [("JS1:abc", "JS1:abc peakgate=0123abcd"), ("a peakgate=unchecked b", "a peakgate=0123abcd b")])
def test_the_stamp_leaves_what_others_wrote(version: str, gate: Recorded, known: str, want: str) -> None:
    """It stands behind another's comment, and replaces an earlier stamp."""
    assert one(gate, Call(job=BATCH | {"admin_comment": known}), version).job["admin_comment"] == want


def test_a_dash_leaves_no_stamp(version: str, gate: Recorded) -> None:
    """A job that nothing was to be checked of."""
    gate.reply = "ALLOW -\nEND\n"
    found = one(gate, Call(job=BATCH), version)
    assert found.code == 0
    assert "admin_comment" not in found.job


def test_an_answer_steers_what_it_may(version: str, gate: Recorded) -> None:
    """The GPU request and the features; no other field, whatever the answer says."""
    gate.reply = "ALLOW 0123abcd\nSET tres_per_node gres:gpu:a100-80:1\nSET features gpu80g\nSET user_id 0\nSET script x\nEND\n"
    found = one(gate, Call(job=BATCH), version)
    assert (found.job["tres_per_node"], found.job["features"]) == ("gres:gpu:a100-80:1", "gpu80g")
    assert "user_id" not in found.job
    assert found.job["script"] == str(BATCH["script"]).replace("\n", "\\n")


def test_later_components_are_judged_by_the_first_ones_script(version: str, gate: Recorded) -> None:
    """Of one user, and of no other one, whose component comes between."""
    first = Call(job=BATCH | {"het_job_offset": 0})
    later: dict[str, Lua] = {"tres_per_node": "gres:gpu:1", "het_job_offset": 1, "argc": 1, "argv": ["job.sh"]}
    others = [Call(job=later, uid=uid) for uid in (1002, 1001)]
    play([first, *others], version=version, settings={"socket": str(gate.path)})
    assert [b"torchrun" in request for request in gate.requests] == [True, False, True]


def test_a_first_component_without_gpus_brings_its_script(version: str, gate: Recorded) -> None:
    """It asks nobody itself; what the one before it brought, of the same user, counts no more."""
    before = Call(job=BATCH | {"het_job_offset": 0})
    first = Call(job={"script": "#!/bin/sh\nsrun --het-group=1 deepspeed other.py\n", "environment": {}, "het_job_offset": 0})
    later = Call(job={"tres_per_node": "gres:gpu:1", "het_job_offset": 1})
    play([before, first, later], version=version, settings={"socket": str(gate.path)})
    assert [(b"torchrun" in request, b"other.py" in request) for request in gate.requests] == [(True, False), (False, True)]


MEMBERS: dict[str, Lua] = {"tres_per_node": "gres:gpu:h100:1", "admin_comment": "peakgate=old", "job_id": 7, "partition": "gpu"}


def test_a_change_of_the_request_is_judged(version: str, gate: Recorded) -> None:
    """What is changed and what the job was. Nothing is written into the job: its owner may not change its stamp."""
    found = one(gate, Call(job={"tres_per_node": "gres:gpu:a100-40:1"}, record=MEMBERS), version)
    assert gate.last["op"] == "modify"
    assert gate.last["fields"] == {"tres_per_node": "gres:gpu:a100-40:1"}
    assert gate.last["record"] == MEMBERS
    assert (found.code, set(found.job)) == (0, {"tres_per_node"})


@pytest.mark.parametrize(
    ("change", "record"),
    [({"priority": 0}, MEMBERS), ({"time_limit": 5, "min_nodes": NO_VAL}, MEMBERS), ({"partition": "cpu"}, {"partition": "any"})],
)
def test_other_changes_ask_nobody(version: str, gate: Recorded, change: dict[str, Lua], record: dict[str, Lua]) -> None:
    """A priority, a time limit; a job without GPUs."""
    assert one(gate, Call(job=change, record=record), version).code == 0
    assert gate.requests == []


def test_a_refused_change_is_told(version: str, gate: Recorded) -> None:
    """From 23.02 on the user reads it; before, the code's own words."""
    gate.reply = "DENY gres\nSAY peakgate: too large\nEND\n"
    found = one(gate, Call(job={"features": "x"}, record=MEMBERS), version)
    assert (found.code, found.says) == (2072, ["peakgate: too large"])


def test_a_wrong_setting_is_told_and_left_out(version: str, gate: Recorded) -> None:
    """By its name; the hook works on."""
    found = play([Call(job=BATCH)], version=version, settings={"socket": str(gate.path), "budget": 3, "fail_open": "yes"})
    told = sorted(line.split()[3] for line in found[0].log if line.startswith("error: peakgate: setting"))
    assert told == ["budget", "fail_open"]
    assert found[0].job["admin_comment"] == "peakgate=0123abcd"


INSIDE: dict[str, Lua] = {
    "SLURM_JOB_ID": "17",
    "PEAKGATE_PREDICTION": "predictions/outer",
    "SLURM_PEAKGATE_PREDICTION": "predictions/outer",
}


@pytest.mark.parametrize("reply", ["ALLOW -\nEND\n", "ALLOW unchecked\nEND\n", "garbage\n"])
@pytest.mark.parametrize(
    ("more", "want"),
    [
        ({}, ""),
        ({"PEAKGATE_ATTACHED": "id=outer digest=a script=b"}, ""),
        ({"PEAKGATE_ATTACHED": "id=outer in=1"}, ""),
        ({"PEAKGATE_ATTACHED": "id=own in=17 told=1", "PEAKGATE_PREDICTION": "predictions/own"}, "predictions/own"),
        ({"SLURM_JOB_ID": None}, "predictions/outer"),
    ],
)
def test_the_prediction_of_the_job_around_it_is_no_jobs_own(
    version: str, gate: Recorded, reply: str, more: dict[str, Lua], want: str
) -> None:
    """Whatever the gate answers; what was attached inside that job, or given by hand outside of any, stays."""
    gate.reply = reply
    found = one(gate, Call(job=BATCH | {"environment": INSIDE | more}), version)
    assert found.code == 0
    assert found.job["environment.PEAKGATE_PREDICTION"] == want
    assert found.job["environment.SLURM_PEAKGATE_PREDICTION"] == ("" if "SLURM_JOB_ID" not in more else "predictions/outer")
