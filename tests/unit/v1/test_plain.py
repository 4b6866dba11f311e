"""Answers as JSON: numbers are numbers, defaults are kept, enum words have no prefix."""

from __future__ import annotations

import json

from google.protobuf.struct_pb2 import Value

from peakgate.v1.document import answer_to_dict
from peakgate.v1.prediction_pb2 import LedgerLine, Peak, PredictResponse, Suggestion, TryAnyway, Verdict
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse, PredictionSummary, SuggestResponse
from peakgate.v1.training_job_pb2 import TrainingJob


def test_64_bit_integers_are_numbers() -> None:
    """A size stays a number, also above 2^53."""
    answer = answer_to_dict(PredictResponse(peak=Peak(device_bytes=2**60)))
    assert json.loads(json.dumps(answer))["peak"]["device_bytes"] == 2**60


def test_defaults_are_kept() -> None:
    """Every key of the contract is there, also in an empty answer; a message that is not set has its defaults, but for a try."""
    answer = answer_to_dict(PredictResponse())
    assert set(answer) == {field.name for field in PredictResponse.DESCRIPTOR.fields} - {"try_anyway"}
    assert answer["capacity"] == {"gpu": "", "total_bytes": 0, "usable_bytes": 0, "is_part": False}
    assert answer["ledger"] == []
    assert answer["oom_phase"] == ""


def test_a_step_time_that_nobody_estimated_is_null() -> None:
    """0 would read as infinitely fast; an estimate is a number."""
    answer = answer_to_dict(PredictResponse(suggestions=[Suggestion(), Suggestion(relative_step_time=1.5)]))
    assert [each["relative_step_time"] for each in answer["suggestions"]] == [None, 1.5]  # type: ignore[index,union-attr,call-overload]  # Plain is any JSON


def test_the_verdict_loses_its_prefix() -> None:
    """VERDICT_REJECT is written REJECT."""
    assert answer_to_dict(PredictResponse(verdict=Verdict.VERDICT_REJECT))["verdict"] == "REJECT"


def test_changes_are_plain_values() -> None:
    """A change to 4 is the number 4, not 4.0; text and truth stay what they are."""
    suggestion = Suggestion(
        changes={
            "batch.micro_batch_size": Value(number_value=4),
            "dropout.hidden": Value(number_value=0.5),
            "attention.implementation": Value(string_value="flash"),
            "lora.double_quant": Value(bool_value=True),
        }
    )
    want = {"attention.implementation": "flash", "batch.micro_batch_size": 4, "dropout.hidden": 0.5, "lora.double_quant": True}
    changes = answer_to_dict(suggestion)["changes"]
    assert json.dumps(changes) == json.dumps(want)


def test_lists_of_messages() -> None:
    """A ledger is a list of objects."""
    answer = answer_to_dict(PredictResponse(ledger=[LedgerLine(category="logits", item="loss", bytes=5)]))
    assert answer["ledger"] == [{"category": "logits", "item": "loss", "bytes": 5}]


def test_times_are_rfc_3339() -> None:
    """A time is text with its zone, and empty when there is none."""
    summary = PredictionSummary()
    assert answer_to_dict(summary)["create_time"] == ""
    summary.create_time.FromSeconds(1_700_000_000)
    assert answer_to_dict(summary)["create_time"] == "2023-11-14T22:13:20Z"


def test_a_job_in_an_answer_is_its_document() -> None:
    """GetPrediction's job has only what was stated."""
    response = GetPredictionResponse(job=TrainingJob(name="x"))
    assert answer_to_dict(response)["job"] == {"name": "x"}


def test_answers_nest() -> None:
    """The answer inside a suggestion response has the form of an answer."""
    response = SuggestResponse(prediction=PredictResponse(verdict=Verdict.VERDICT_ADMIT))
    prediction = answer_to_dict(response)["prediction"]
    assert isinstance(prediction, dict)
    assert prediction["verdict"] == "ADMIT"


def test_a_try_is_there_only_when_it_was_asked_for() -> None:
    """Every other answer keeps the form that programs know; a try that was not granted has all its members."""
    assert "try_anyway" not in answer_to_dict(PredictResponse(verdict=Verdict.VERDICT_REJECT))
    refused = answer_to_dict(PredictResponse(try_anyway=TryAnyway(message="no")))
    assert refused["try_anyway"] == {"granted": False, "message": "no", "left": 0, "limit": 0, "next_time": ""}
