"""A launch that names a model which no catalogue holds is answered with what is missing; a document that does is an error."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from peakgate.client.connect import Client, open_client
from peakgate.client.errors import PeakgateError
from peakgate.client.source import Source
from peakgate.client.sources import read_source
from peakgate.client.unknown_model import ask, settled
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict

SCRIPT = """#!/bin/bash
{own}
torchrun --nproc_per_node 8 run_clm.py --do_train --model_name_or_path my-org/llama-3.1-8c --per_device_train_batch_size 2 --block_size 512
"""

POD = """apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {peakgate.io/spec: "model: {preset: my-org/llama-3.1-8c}"}}
spec: {containers: [{name: train, image: train, command: [python, train_of_nobody.py]}]}
"""


def a_source(folder: Path, text: str, name: str = "train.sh") -> Source:
    """The job of a file, on a card."""
    (folder / name).write_text(text)
    return read_source([str(folder / name)], io.BytesIO()).on("h100-80gb")


def both_ways(client: Client, source: Source) -> tuple[PredictResponse, PredictResponse]:
    """The answers of a call that raises, and of one whose outcome is at hand."""
    try:
        outcome: PredictResponse | PeakgateError = client.predict(source.required())
    except PeakgateError as error:
        outcome = error
    found = settled(outcome, source, client.predict)
    assert isinstance(found, PredictResponse), found
    return ask(client.predict, source.required(), source), found


def test_a_launch_is_told_what_is_missing(tmp_path: Path) -> None:
    """UNDECIDED: the name, the nearest one, what to state, and where the name stands; the job itself stays as it was read."""
    source = a_source(tmp_path, SCRIPT.format(own=""))
    with open_client() as client:
        for answer in both_ways(client, source):
            assert answer.verdict == Verdict.VERDICT_UNDECIDED
            for want_words in ("'my-org/llama-3.1-8c'", "did you mean", "model.hf_config", "train.sh:3 --model_name_or_path"):
                assert want_words in answer.reason
            assert not any("huggingface/llama" in each for each in answer.assumptions)
    assert source.required().model.preset == "my-org/llama-3.1-8c"


def test_a_reward_model_that_is_not_known_is_not_left_out(tmp_path: Path) -> None:
    """The other models of a method as well: the answer is not that of a job without it."""
    command = ("trl", "grpo", "--model_name_or_path", "Qwen/Qwen2.5-0.5B", "--reward_model_name_or_path", "my-org/judge", "--use_vllm")
    source = read_source([], io.BytesIO(), command).on("h100-80gb")
    with open_client() as client:
        answer = ask(client.predict, source.required(), source)
    assert answer.verdict == Verdict.VERDICT_UNDECIDED
    assert "'my-org/judge'" in answer.reason


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("job.yaml", "model: {preset: my-org/llama-3.1-8c}\nbatch: {micro_batch_size: 1, sequence_length: 512}\n"),
        ("train.sh", SCRIPT.format(own="#PEAKGATE model.preset=my-org/llama-3.1-8c")),
        ("pod.yaml", POD),
    ],
    ids=["a job document", "a line of the submitter's own", "an annotation"],
)
def test_a_name_that_the_submitter_wrote_for_us_is_an_error(tmp_path: Path, name: str, text: str) -> None:
    """It was written as a name of the catalogue, so it is a mistake."""
    source = a_source(tmp_path, text, name)
    with open_client() as client, pytest.raises(PeakgateError) as caught:
        ask(client.predict, source.required(), source)
    assert caught.value.reason == "MODEL_UNKNOWN"


def test_another_error_stays_one(tmp_path: Path) -> None:
    """Degrees that do not multiply are the launch's own fault."""
    text = SCRIPT.format(own="#PEAKGATE parallelism.tensor=3")
    source = a_source(tmp_path, text.replace("my-org/llama-3.1-8c", "meta-llama/Llama-3.1-8B"))
    with open_client() as client, pytest.raises(PeakgateError) as caught:
        ask(client.predict, source.required(), source)
    assert caught.value.reason == "PARALLELISM_MISMATCH"
