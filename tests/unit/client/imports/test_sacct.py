"""Jobs out of Slurm's accounting, in both of sacct's forms."""

from __future__ import annotations

import json

import pytest

from peakgate.client.errors import InputError
from peakgate.client.imports.job import ImportedJob
from peakgate.client.imports.sacct import read_sacct
from peakgate.client.imports.sacct_text import COMMAND

GIB = 1 << 30
NAMES = "JobID|JobIDRaw|Cluster|State|ExitCode|Start|End|NTasks|AllocTRES|TRESUsageInMax|TRESUsageInMaxNode|TRESUsageInMaxTask|AdminComment"
START, END = "1760000000", "1760007200"


def a_job(job: str = "101", *, state: str = "COMPLETED", exit_code: str = "0:0", gpus: int = 4, comment: str = "peakgate=abc") -> str:
    """The line of a job."""
    return f"{job}|{job}|alpha|{state}|{exit_code}|{START}|{END}||billing=8,cpu=8,gres/gpu={gpus},mem=64G,node=1||||{comment}"


def a_step(step: str = "101.0", *, tasks: int = 4, gpus: int = 4, memory: str = "38888M", node: str = "n7", task: str = "2") -> str:
    """The line of a step; `memory` is that of its highest task."""
    used = f"cpu=00:56:24,energy=0,fs/disk=350130,gres/gpumem={memory},gres/gpuutil=100,mem=10372780K,pages=3465"
    nodes, numbers = (f"cpu=n1,gres/gpumem={value},gres/gpuutil=n1,mem=n1" for value in (node, task))
    return f"{step}|{step}|alpha|COMPLETED|0:0|{START}|{END}|{tasks}|cpu=8,gres/gpu={gpus},mem=64G,node=1|{used}|{nodes}|{numbers}|"


def read(*lines: str, mapping: dict[str, str] | None = None) -> list[ImportedJob]:
    """The jobs in a file of these lines."""
    return read_sacct("\n".join((NAMES, *lines)) + "\n", where="usage", mapping=mapping)


def test_a_task_with_one_gpu_is_that_gpu() -> None:
    """The highest task of the step, on the node where it ran."""
    (job,) = read(a_job(), a_step())
    assert (job.job, job.cluster, job.prediction, job.event, job.problem) == ("101", "alpha", "predictions/abc", "finished", "")
    assert (job.end_time, job.exit_code, job.signal) == (1_760_007_200.0, 0, None)
    (peak,) = job.peaks
    assert (peak.peak_bytes, peak.node, peak.gpu_uuid, peak.flags) == (38_888 << 20, "n7", "GPU-of-task-2-of-step-0", ())
    assert (peak.first_time, peak.last_time) == (1_760_000_000.0, 1_760_007_200.0)


def test_a_task_with_several_gpus_gives_their_mean_and_says_so() -> None:
    """One task a node that starts a process a GPU, as torchrun does."""
    (job,) = read(a_job(gpus=8), a_step("101.batch", tasks=1, gpus=8, memory="400G"))
    assert [(peak.peak_bytes, peak.flags) for peak in job.peaks] == [(50 * GIB, ("averaged",))]


def test_a_figure_of_a_node_is_spread_over_its_gpus() -> None:
    """Task -1: sacct's word for a figure that is not a task's. Two nodes of four GPUs with a task a GPU."""
    step = a_step(tasks=8, gpus=8, memory="200G", task="-1").replace("node=1", "node=2")
    (job,) = read(a_job(gpus=8), step)
    assert [(peak.peak_bytes, peak.gpu_uuid, peak.flags) for peak in job.peaks] == [(50 * GIB, "GPU-of-node-of-step-0", ("averaged",))]
    (unsaid,) = read(a_job(gpus=8), step.replace(",node=2", ""))
    assert "how many nodes" in unsaid.problem


def test_columns_may_be_spelled_as_the_manual_does() -> None:
    """TresUsageInMax, jobid."""
    text = "\n".join((NAMES.replace("TRESUsage", "TresUsage").replace("JobIDRaw", "jobidraw"), a_job(), a_step()))
    (job,) = read_sacct(text, where="usage")
    assert len(job.peaks) == 1


@pytest.mark.parametrize(
    ("memory", "want_bytes"),
    [("1024K", 1 << 20), ("2M", 2 << 20), ("1.5G", 3 * GIB // 2), ("1T", 1 << 40), ("12345678", 12_345_678)],
)
def test_units_are_powers_of_1024(memory: str, want_bytes: int) -> None:
    """As Slurm writes them; without a letter they are bytes."""
    (job,) = read(a_job(gpus=1), a_step(tasks=1, gpus=1, memory=memory))
    assert [peak.peak_bytes for peak in job.peaks] == [want_bytes]


@pytest.mark.parametrize(
    ("state", "exit_code", "want"),
    [
        ("COMPLETED", "0:0", ("finished", 0, None)),
        ("FAILED", "1:0", ("failed", 1, None)),
        ("OUT_OF_MEMORY", "0:125", ("failed", 0, 125)),
        ("NODE_FAIL", "1:0", ("failed", 1, None)),
        ("TIMEOUT", "0:15", ("cancelled", 0, 15)),
        ("CANCELLED by 1000", "0:9", ("cancelled", 0, 9)),
        ("PREEMPTED", "0:0", ("cancelled", 0, None)),
    ],
)
def test_a_state_says_how_it_ended(state: str, exit_code: str, want: tuple[str, int, int | None]) -> None:
    """OUT_OF_MEMORY is the node's RAM: the job failed, and of its GPUs it says nothing."""
    (job,) = read(a_job(state=state, exit_code=exit_code), a_step())
    assert (job.event, job.exit_code, job.signal) == want


@pytest.mark.parametrize(
    ("lines", "want_problem"),
    [
        ((a_job(state="RUNNING"), a_step()), "has not ended"),
        ((a_job(), a_step(memory="0")), "no step has a figure of gres/gpumem"),
        ((a_job(), a_step("101.extern")), "no step has a figure of gres/gpumem"),
        ((a_job(gpus=0), a_step(gpus=0)), "how many GPUs"),
        ((a_job(), a_step(tasks=8)), "8 tasks of step 0 shared 4 GPUs"),
        ((a_job(), a_step(node="")), "the node of the highest task"),
        ((a_job(), a_step(memory="16E")), "no amount of memory"),
    ],
)
def test_a_job_that_says_too_little_has_its_reason(lines: tuple[str, ...], want_problem: str) -> None:
    """It is not guessed at."""
    (job,) = read(*lines)
    assert want_problem in job.problem
    assert job.peaks == ()


def test_several_trainings_of_one_allocation_are_told() -> None:
    """Which of them the prediction is of is not known."""
    (job,) = read(a_job(), a_step("101.0"), a_step("101.1", memory="9G"))
    assert [peak.flags for peak in job.peaks] == [("several",), ("several",)]


def test_elements_of_an_array_go_by_the_id_that_they_see() -> None:
    """SLURM_JOB_ID, which JobIDRaw has and JobID not."""
    element = a_job("105").replace("105|105", "104_1|105", 1)
    step = a_step("105.0").replace("105.0|105.0", "104_1.0|105.0", 1)
    (job,) = read(element, step)
    assert (job.job, len(job.peaks)) == ("105", 1)


def test_attempts_of_a_requeued_job_are_numbered_by_their_start() -> None:
    """sacct --duplicates; with a column Restarts that says it."""
    earlier = a_job(state="NODE_FAIL").replace(START, "1750000000").replace(END, "1750000100")
    jobs = read(a_job(), a_step(), earlier)
    assert [(job.restart, job.event) for job in jobs] == [(0, "failed"), (1, "finished")]


@pytest.mark.parametrize(
    ("comment", "want"),
    [
        ("peakgate=abc", "predictions/abc"),
        ("note; peakgate=predictions/abc,x=1", "predictions/abc"),
        ("peakgate=unchecked", ""),
        ("mypeakgate=abc", ""),
        ("", ""),
    ],
)
def test_a_job_is_joined_by_its_comment(comment: str, want: str) -> None:
    """As the gate writes it; never by name or time."""
    (job,) = read(a_job(comment=comment), a_step())
    assert job.prediction == want


def test_a_mapping_goes_before_the_comment() -> None:
    """The operator knows better."""
    (job,) = read(a_job(), a_step(), mapping={"101": "predictions/other"})
    assert job.prediction == "predictions/other"


def test_a_file_without_the_columns_is_refused_with_the_command_that_makes_one() -> None:
    """Which columns are missing, and what to run."""
    with pytest.raises(InputError, match="AllocTRES") as caught:
        read_sacct("JobID|State|Start|End\n1|COMPLETED|a|b\n", where="usage")
    assert COMMAND in caught.value.message
    with pytest.raises(InputError, match="holds no job"):
        read_sacct(NAMES, where="usage")


def number(value: int) -> dict[str, object]:
    """As newer versions wrap a number."""
    return {"set": True, "infinite": False, "number": value}


def a_document(*, wrapped: bool) -> str:
    """The job of the tests above as sacct --json writes it: newer versions wrap numbers and list the state."""
    amount = number if wrapped else (lambda value: value)
    highest = [
        {"type": "mem", "name": "", "id": 2, "count": 5 * GIB, "task": 0, "node": "n1"},
        {"type": "gres", "name": "gpumem", "id": 1003, "count": 40 * GIB, "task": 3, "node": "n7"},
    ]
    step = {
        "step": {"id": "101.0" if not wrapped else {"job_id": 101, "step_id": "0"}, "name": "train"},
        "tasks": {"count": 4},
        "tres": {"requested": {"max": highest}, "allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 4}]},
    }
    job = {
        "job_id": 101,
        "cluster": "alpha",
        "state": {"current": ["TIMEOUT"] if wrapped else "TIMEOUT", "reason": "None"},
        "exit_code": {"return_code": amount(0), "signal": {"id": amount(15), "name": "TERM"} if wrapped else {"signal_id": 15}},
        "time": {"start": 1_760_000_000, "end": 1_760_007_200},
        "comment": {"administrator": "peakgate=abc", "job": "", "system": ""},
        "restart_cnt": 1,
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 4}]},
        "steps": [step],
    }
    return json.dumps({"meta": {}, "jobs": [job], "errors": []})


@pytest.mark.parametrize("wrapped", [False, True], ids=["older", "newer"])
def test_json_says_the_same(wrapped: bool) -> None:
    """In the forms of several versions."""
    (job,) = read_sacct(a_document(wrapped=wrapped), where="usage")
    assert (job.job, job.restart, job.event, job.exit_code, job.signal) == ("101", 1, "cancelled", 0, 15)
    assert (job.prediction, job.problem) == ("predictions/abc", "")
    assert [(peak.peak_bytes, peak.node, peak.gpu_uuid) for peak in job.peaks] == [(40 * GIB, "n7", "GPU-of-task-3-of-step-0")]


@pytest.mark.parametrize("text", ["{", '{"jobs": 3}', '{"errors": []}'])
def test_another_document_is_refused(text: str) -> None:
    """With what is wrong."""
    with pytest.raises(InputError, match="usage"):
        read_sacct(text, where="usage")


def test_a_document_of_odd_values_is_read_as_far_as_it_goes() -> None:
    """A field of another type is one that says nothing."""
    (job,) = read_sacct('{"jobs": [{"job_id": 7, "state": null, "steps": [3, {"tres": []}], "comment": "x"}]}', where="usage")
    assert (job.job, job.problem) == ("7", "has not ended")
