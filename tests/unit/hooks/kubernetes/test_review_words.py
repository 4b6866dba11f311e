"""What a review says of a launch that is not at hand, evaluates alone, or whose submitter says what a file holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.admission_reviews import SPEC, a_container, a_review, a_template, a_workload

from peakgate.hooks.kubernetes.review import Reviewer

H100, MODEL = "NVIDIA-H100-80GB-HBM3", "--model_name_or_path meta-llama/Llama-3.1-8B"
LAUNCH = f"deepspeed train.py --deepspeed ds_z3.json {MODEL} --per_device_train_batch_size 4 --bf16 --max_seq_length 4096"
FULL = f"torchrun run_clm.py --do_train {MODEL} --per_device_train_batch_size 4 --block_size 4096 --bf16 --optim adamw_torch"


async def warnings_of(reviewer: Reviewer, command: str, *, name: str = "job", annotations: dict[str, str] | None = None) -> list[str]:
    """What is said of a Job that runs a command in a shell."""
    workload = a_workload("Job", template=a_template(product=H100, container=a_container(command=["bash", "-c", command])))
    workload["metadata"] |= {"name": name, "annotations": annotations or {}}
    body: dict[str, Any] = json.loads(await reviewer.validate(json.dumps(a_review(workload)).encode()))
    found: list[str] = body["response"].get("warnings", [])
    return found


@pytest.mark.parametrize(
    ("name", "command", "want"),
    [
        ("job", "/scripts/train.sh", True),
        ("job", "/scripts/run.sh", False),
        ("llama-finetune", "/scripts/run.sh", True),
        ("llama-finetune", "bash /scripts/eval.sh", False),
        ("llama-finetune", "sleep infinity", False),
        ("job", f"torchrun run_clm.py {MODEL} --do_eval --per_device_eval_batch_size 8", False),
        ("job", f"torchrun run_clm.py {MODEL} --do_eval --do_train", True),
    ],
)
async def test_what_may_train_is_not_passed_in_silence(reviewer: Reviewer, name: str, command: str, *, want: bool) -> None:
    """A script that is not at hand, by its own name or by the name of what runs it; an evaluation is nobody's business."""
    assert bool(await warnings_of(reviewer, command, name=name)) is want


async def test_what_a_file_says_can_be_stated(reviewer: Reviewer) -> None:
    """As the warning has it: then it is judged, and what is wrong in it is told."""
    (line,) = await warnings_of(reviewer, LAUNCH)
    assert line.startswith("peakgate: cannot be judged: unread: what ds_z3.json says (Job/job:1 --deepspeed)")
    assert "state what it says, and unread: [], in the annotation peakgate.io/spec" in line
    (line,) = await warnings_of(reviewer, LAUNCH, annotations={SPEC: '{"unread": [], "parallelism": {"sharding": "zero3"}}'})
    assert "unread" not in line
    assert line.startswith("peakgate: cannot be judged: optimizer.name and batch.sequence_lengths.max are not stated")
    (line,) = await warnings_of(reviewer, LAUNCH, annotations={SPEC: '{"parallelism": {"zero": 3}}'})
    assert "parallelism.zero" in line


async def test_a_change_of_the_object_itself_names_no_file(reviewer: Reviewer) -> None:
    """Its name would take the room of what the change comes to."""
    found = await warnings_of(reviewer, f"{FULL} --use_peft --lora_r 8", name="j01")
    assert len(found) == 3
    assert "--per_device_train_batch_size 1" in found[1]
    assert "j01" not in found[1]
