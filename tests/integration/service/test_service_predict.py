"""Predict, Suggest and the lists over real gRPC on a real SQLite file."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable
from typing import Any

import grpc
import psycopg
import pytest
from tests.databases import Database

from peakgate.v1 import calibration_service_pb2 as calibration_pb
from peakgate.v1 import catalog_service_pb2 as catalog_pb
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_pb2 import VERDICT_ADMIT, VERDICT_REJECT, VERDICT_UNDECIDED
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]
ROW_LIMIT_BYTES = 4096


def size(value: object) -> int:
    """Of a column in a row: of its bytes, or of its text."""
    return len(value) if isinstance(value, bytes) else len(str(value))


async def test_a_job_that_fits_is_admitted_and_stored(service: Any, a_job: AJob) -> None:
    """The answer has a name, by which it is found again before and after it is written."""
    answer = await service.predictions.Predict(pb.PredictRequest(job=a_job()))
    assert answer.verdict == VERDICT_ADMIT
    assert answer.prediction.startswith("predictions/")
    assert sum(line.bytes for line in answer.ledger) == answer.peak.device_bytes
    for _ in range(2):
        found = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=answer.prediction))
        assert found.prediction == answer
        assert found.job == a_job()
        assert found.stored.reason == answer.reason
        await service.core.audit.flush()


async def test_a_job_that_does_not_fit_is_an_answer(service: Any, a_job: AJob) -> None:
    """OK with REJECT: the category first, and the cheapest fix as the first suggestion."""
    answer = await service.predictions.Predict(pb.PredictRequest(job=a_job(attention="eager")))
    assert answer.verdict == VERDICT_REJECT
    assert answer.reason.startswith("activations")
    assert round(answer.peak.required_bytes / 1e9, 1) == 116.1
    assert answer.oom_phase == "forward"
    assert dict(answer.suggestions[0].changes)["attention.implementation"].string_value == "flash"
    assert answer.suggestions[0].fits


async def test_a_stored_prediction_is_told_briefly(service: Any, a_job: AJob) -> None:
    """The same verdict and figures without the search for a change, which a hook does not wait for."""
    answer = await service.predictions.Predict(pb.PredictRequest(job=a_job(attention="eager"), brief=True))
    found = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=answer.prediction, brief=True))
    assert found.prediction == answer
    assert not found.prediction.suggestions
    whole = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=answer.prediction))
    assert whole.prediction.suggestions


async def test_no_gpu_is_undecided_with_all_figures(service: Any, a_job: AJob) -> None:
    """The need is known, the card is not."""
    answer = await service.predictions.Predict(pb.PredictRequest(job=a_job(gpu="")))
    assert answer.verdict == VERDICT_UNDECIDED
    assert answer.peak.required_bytes > 0
    assert not answer.HasField("capacity")


async def test_an_equal_job_is_computed_once_and_named_anew(service: Any, a_job: AJob) -> None:
    """Two predictions, one computation, equal answers."""
    first = await service.predictions.Predict(pb.PredictRequest(job=a_job()))
    second = await service.predictions.Predict(pb.PredictRequest(job=a_job()))
    assert first.prediction != second.prediction
    second.prediction = first.prediction
    assert first == second
    assert b"peakgate_answers_cached_total 1.0" in service.metrics.exposition()


async def test_validate_only_stores_nothing(service: Any, a_job: AJob, database: Database) -> None:
    """The same answer without a name."""
    answer = await service.predictions.Predict(pb.PredictRequest(job=a_job(), validate_only=True))
    assert (answer.prediction, answer.verdict) == ("", VERDICT_ADMIT)
    await service.core.audit.flush()
    assert database.count("predictions") == 0


async def test_brief_leaves_out_timeline_and_suggestions(service: Any, a_job: AJob) -> None:
    """And nothing else."""
    whole = await service.predictions.Predict(pb.PredictRequest(job=a_job(attention="eager")))
    short = await service.predictions.Predict(pb.PredictRequest(job=a_job(attention="eager"), brief=True))
    assert (len(short.timeline), len(short.suggestions)) == (0, 0)
    assert short.reason == whole.reason
    assert list(short.ledger) == list(whole.ledger)


async def test_the_same_request_id_gives_the_same_answer(service: Any, a_job: AJob, database: Database) -> None:
    """While the row waits, after it was written, and to calls at the same time."""
    request = pb.PredictRequest(job=a_job(), request_id=str(uuid.UUID(int=1)))
    answers = await asyncio.gather(*(service.predictions.Predict(request) for _ in range(5)))
    await service.core.audit.flush()
    answers.append(await service.predictions.Predict(request))
    assert all(answer == answers[0] for answer in answers)
    assert database.count("predictions") == 1


async def test_a_request_id_is_known_after_a_restart(start_service: Any, a_job: AJob) -> None:
    """The answer is the stored one, its timeline computed again."""
    request = pb.PredictRequest(job=a_job(), request_id=str(uuid.UUID(int=1)))
    async with start_service() as first:
        want_answer = await first.predictions.Predict(request)
    async with start_service() as second:
        assert await second.predictions.Predict(request) == want_answer


async def test_a_request_id_with_another_body_is_refused(service: Any, a_job: AJob, refusal: Any) -> None:
    """ALREADY_EXISTS: the caller would take another job's answer for its own."""
    request_id = str(uuid.UUID(int=1))
    await service.predictions.Predict(pb.PredictRequest(job=a_job(), request_id=request_id))
    with pytest.raises(grpc.RpcError) as caught:
        await service.predictions.Predict(pb.PredictRequest(job=a_job(micro_batch_size=1), request_id=request_id))
    assert refusal(caught.value).code is grpc.StatusCode.ALREADY_EXISTS
    assert refusal(caught.value).reason == "REQUEST_ID_REUSED"


async def test_a_stored_row_takes_at_most_four_kilobytes(service: Any, a_job: AJob, database: Database) -> None:
    """Also that of a rejection with all its suggestions; the job is stored once."""
    for _ in range(3):
        await service.predictions.Predict(pb.PredictRequest(job=a_job(attention="eager")))
    await service.core.audit.flush()
    largest = max(sum(size(value) for value in row) for row in database.rows("SELECT * FROM predictions"))
    ((body,),) = database.rows("SELECT body FROM jobs")
    assert largest + size(body) <= ROW_LIMIT_BYTES
    assert database.count("jobs") == 1


async def test_predictions_are_listed_newest_first_in_pages(service: Any, a_job: AJob) -> None:
    """The tokens walk through all of them once."""
    want_names = [(await service.predictions.Predict(pb.PredictRequest(job=a_job()))).prediction for _ in range(5)]
    names, token = [], ""
    while True:
        page = await service.predictions.ListPredictions(pb.ListPredictionsRequest(page_size=2, page_token=token))
        names += [each.prediction for each in page.predictions]
        token = page.next_page_token
        if not token:
            break
    assert names == want_names[::-1]


async def test_a_token_does_not_fit_another_list(service: Any, a_job: AJob, refusal: Any) -> None:
    """The filters are part of it."""
    for _ in range(2):
        await service.predictions.Predict(pb.PredictRequest(job=a_job()))
    page = await service.predictions.ListPredictions(pb.ListPredictionsRequest(page_size=1))
    with pytest.raises(grpc.RpcError) as caught:
        await service.predictions.ListPredictions(pb.ListPredictionsRequest(observed_only=True, page_token=page.next_page_token))
    assert refusal(caught.value).reason == "PAGE_TOKEN_INVALID"


async def test_an_unknown_prediction_is_not_found(service: Any, refusal: Any) -> None:
    """Also one that has expired."""
    with pytest.raises(grpc.RpcError) as caught:
        await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction="predictions/none"))
    assert refusal(caught.value).code is grpc.StatusCode.NOT_FOUND
    assert refusal(caught.value).reason == "PREDICTION_NOT_FOUND"


async def test_suggest_ranks_fixes_and_inverts_fields(service: Any, a_job: AJob) -> None:
    """Flash first; the largest micro-batch and the smallest card; the longest sequence."""
    request = pb.SuggestRequest(job=a_job(attention="eager"), solve="batch.sequence_length", limit=2)
    found = await service.predictions.Suggest(request)
    assert found.suggestions[0].title == "FlashAttention"
    assert len(found.suggestions) == 2
    assert found.largest_micro_batch_size == 5
    assert found.smallest_gpu
    assert 1024 < found.solved_value < 2048


async def test_suggest_names_room_cards_and_notes(service: Any, a_job: AJob) -> None:
    """What a change leaves free; of a job that fits with room, the share of its card and the way to use the rest."""
    found = await service.predictions.Suggest(pb.SuggestRequest(job=a_job(attention="eager")))
    first = found.suggestions[0]
    assert first.headroom_bytes == found.prediction.capacity.usable_bytes - first.bound_bytes > 0
    assert (found.memory_fraction, list(found.notes)) == (0, [])
    small = await service.predictions.Suggest(pb.SuggestRequest(job=a_job(micro_batch_size=1)))
    assert 0 < small.memory_fraction < 0.9
    assert small.smallest_gpu in small.notes[0]
    assert small.prediction.notes


async def test_what_a_request_wishes_is_checked(service: Any, a_job: AJob, refusal: Any) -> None:
    """An unknown word, an unknown path, and a field that is kept and to be solved."""
    requests = [
        (pb.SuggestRequest(job=a_job(), allow=["gpus"]), "allow"),
        (pb.SuggestRequest(job=a_job(), keep=["batch.micro_batch"]), "keep"),
        (pb.SuggestRequest(job=a_job(), keep=["batch"], solve="batch.micro_batch_size"), "solve"),
    ]
    for request, want_field in requests:
        with pytest.raises(grpc.RpcError) as caught:
            await service.predictions.Suggest(request)
        assert refusal(caught.value).reason == "FIELD_INVALID"
        assert want_field in refusal(caught.value).fields


async def bad_jobs(a_job: AJob) -> dict[str, tuple[TrainingJob, grpc.StatusCode, str, str]]:
    """Every bad job that the wire can carry: job, code, reason, a field that must be named."""
    bad = {name: a_job() for name in ("missing", "nan", "negative", "huge", "gpu", "model", "heads", "world", "word")}
    bad["missing"].ClearField("model")
    bad["nan"].dropout.hidden = math.nan
    bad["negative"].batch.micro_batch_size = -1
    bad["huge"].batch.sequence_length = 2**62
    bad["gpu"].gpu.type = "h100-80bg"
    bad["model"].model.preset = "llama-3.1-8c"
    bad["heads"].model.transformer.heads = 3
    bad["heads"].model.transformer.hidden_size = 1000
    bad["world"].parallelism.world_size = 6
    bad["world"].parallelism.tensor = 4
    bad["word"].attention.implementation = "flsh"
    invalid, missing = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
    return {
        "missing": (bad["missing"], invalid, "FIELD_INVALID", "model"),
        "nan": (bad["nan"], invalid, "FIELD_INVALID", "dropout.hidden"),
        "negative": (bad["negative"], invalid, "FIELD_INVALID", "batch.micro_batch_size"),
        "huge": (bad["huge"], invalid, "FIELD_INVALID", "batch.sequence_length"),
        "gpu": (bad["gpu"], missing, "ACCELERATOR_UNKNOWN", "gpu.type"),
        "model": (bad["model"], missing, "MODEL_UNKNOWN", "model.preset"),
        "heads": (bad["heads"], invalid, "FIELD_INVALID", "model.transformer.heads"),
        "world": (bad["world"], invalid, "PARALLELISM_MISMATCH", "parallelism.world_size"),
        "word": (bad["word"], invalid, "FIELD_INVALID", "attention.implementation"),
    }


@pytest.mark.parametrize("name", ["missing", "nan", "negative", "huge", "gpu", "model", "heads", "world", "word"])
async def test_a_bad_job_is_one_clear_error(name: str, service: Any, a_job: AJob, refusal: Any, database: Database) -> None:
    """Code, reason and field as a program reads them; nothing is stored; the next job is served."""
    job, want_code, want_reason, want_field = (await bad_jobs(a_job))[name]
    with pytest.raises(grpc.RpcError) as caught:
        await service.predictions.Predict(pb.PredictRequest(job=job, request_id=str(uuid.UUID(int=1))))
    found = refusal(caught.value)
    assert (found.code, found.reason, found.domain) == (want_code, want_reason, "peakgate.io")
    assert want_field in found.fields
    assert all(found.fields.values())
    await service.core.audit.flush()
    assert database.count("predictions") == 0
    assert (await service.predictions.Predict(pb.PredictRequest(job=a_job()))).verdict == VERDICT_ADMIT


async def test_unknown_names_are_told_the_nearest(service: Any, a_job: AJob, refusal: Any) -> None:
    """A typing error is mended without looking anything up."""
    for name, want_nearest in (("gpu", "h100-80gb"), ("model", "llama-3.1-8b")):
        with pytest.raises(grpc.RpcError) as caught:
            await service.predictions.Predict(pb.PredictRequest(job=(await bad_jobs(a_job))[name][0]))
        assert want_nearest in " ".join(refusal(caught.value).fields.values())


async def test_every_bad_field_is_named_at_once(service: Any, a_job: AJob, refusal: Any) -> None:
    """One round trip mends a document."""
    job = a_job()
    job.attention.implementation, job.batch.micro_batch_size, job.checkpointing.mode = "flsh", -1, "ful"
    with pytest.raises(grpc.RpcError) as caught:
        await service.predictions.Predict(pb.PredictRequest(job=job))
    assert {"attention.implementation", "batch.micro_batch_size", "checkpointing.mode"} <= set(refusal(caught.value).fields)


async def test_numbers_that_cannot_be_read_are_named_beside_what_has_no_meaning(service: Any, a_job: AJob, refusal: Any) -> None:
    """Not a number, an unknown word and an unknown GPU come in one error."""
    job = a_job(gpu="h100-80bg")
    job.dropout.hidden, job.attention.implementation = math.nan, "flsh"
    with pytest.raises(grpc.RpcError) as caught:
        await service.predictions.Predict(pb.PredictRequest(job=job))
    assert set(refusal(caught.value).fields) == {"dropout.hidden", "attention.implementation", "gpu.type"}
    assert refusal(caught.value).reason == "FIELD_INVALID"


@pytest.mark.parametrize("size_bytes", [100_000, 10_000_000])
async def test_a_large_job_is_refused_and_the_service_stays_up(size_bytes: int, service: Any, a_job: AJob, refusal: Any) -> None:
    """INVALID_ARGUMENT with the limit and the remedy, from both calls that take a job; the next job is served."""
    job = a_job()
    job.name = "x" * size_bytes
    for call, request in (
        (service.predictions.Predict, pb.PredictRequest(job=job)),
        (service.predictions.Suggest, pb.SuggestRequest(job=job)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            await call(request)
        assert (refusal(caught.value).code, refusal(caught.value).reason) == (grpc.StatusCode.INVALID_ARGUMENT, "DOCUMENT_TOO_LARGE")
        assert "65536 bytes" in str(caught.value.details())
        assert "leave out" in str(caught.value.details())
    assert (await service.predictions.Predict(pb.PredictRequest(job=a_job()))).verdict == VERDICT_ADMIT


async def test_an_unexpected_error_leaks_nothing(service: Any, a_job: AJob, refusal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """INTERNAL with an incident's id; the exception's text stays in the log."""

    def fail(_job_bytes: bytes) -> None:
        raise ValueError("a secret")

    monkeypatch.setattr(service.core.judge, "judge", fail)
    with pytest.raises(grpc.RpcError) as caught:
        await service.predictions.Predict(pb.PredictRequest(job=a_job()))
    assert refusal(caught.value).code is grpc.StatusCode.INTERNAL
    assert refusal(caught.value).reason == "INTERNAL"
    assert "secret" not in str(caught.value.details())


async def test_the_database_may_be_away(service: Any, a_job: AJob, database: Database) -> None:
    """Predict answers from the last calibration and says so, and the prediction is stored when the database is back."""
    database.run("ALTER TABLE predictions RENAME TO hidden")
    try:
        await service.predictions.Predict(pb.PredictRequest(job=a_job()))
        async with asyncio.timeout(5):
            while service.core.audit.healthy:  # noqa: ASYNC110 - the queue tells nobody else
                await asyncio.sleep(0.01)
        answer = await service.predictions.Predict(pb.PredictRequest(job=a_job()))
        assert any("database is away or slow" in warning for warning in answer.warnings)
        assert answer.verdict == VERDICT_ADMIT
    finally:
        database.run("ALTER TABLE hidden RENAME TO predictions")
    async with asyncio.timeout(10):
        while database.count("predictions") < 2:  # noqa: ASYNC110 - another connection sees what was committed
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
async def test_the_database_may_hang(service: Any, a_job: AJob, database: Database) -> None:
    """It refuses nothing and answers nothing, as behind a lost route: the answer comes in time, a try is not granted."""
    rejected = a_job(micro_batch_size=64)
    with psycopg.connect(database.url) as other:
        other.execute("LOCK TABLE predictions, tries IN ACCESS EXCLUSIVE MODE")
        asked = pb.PredictRequest(job=rejected, brief=True, request_id=str(uuid.uuid4()), user="c/1", try_reason="it ran before")
        answer = await service.predictions.Predict(asked, timeout=3)
        assert answer.verdict == VERDICT_REJECT
        assert any("database is away or slow" in warning for warning in answer.warnings)
        assert not answer.try_anyway.granted
        async with asyncio.timeout(5):
            while service.core.audit.writable:  # noqa: ASYNC110 - the queue tells nobody else
                await asyncio.sleep(0.05)
    found = await service.predictions.Predict(asked, timeout=15)
    assert found.prediction == answer.prediction


async def test_the_catalogue_the_defaults_and_the_schema_are_served(service: Any) -> None:
    """At least 40 models, the GPUs with what NVML reports, a source for each row."""
    models = (await service.catalog.ListModels(catalog_pb.ListModelsRequest())).models
    gpus = (await service.catalog.ListGpus(catalog_pb.ListGpusRequest())).gpus
    defaults = (await service.catalog.ListDefaults(catalog_pb.ListDefaultsRequest())).defaults
    assert len(models) >= 40
    assert "h100-80gb" in {gpu.name for gpu in gpus}
    assert all(row.source for rows_ in (models, gpus, defaults) for row in rows_)
    assert "draft/2020-12" in (await service.catalog.GetJobSchema(catalog_pb.GetJobSchemaRequest())).json


async def test_the_prior_is_the_active_calibration_of_a_new_database(service: Any, refusal: Any) -> None:
    """It has a version; there is nothing to go back to."""
    found = await service.calibration.GetCalibration(calibration_pb.GetCalibrationRequest())
    assert found.calibration.version
    assert found.calibration.state == "active"
    with pytest.raises(grpc.RpcError) as caught:
        await service.calibration.RollbackCalibration(calibration_pb.RollbackCalibrationRequest())
    assert refusal(caught.value).reason == "CALIBRATION_ONLY"


async def test_a_replayed_answer_is_not_stored(service: Any, a_job: AJob) -> None:
    """A replay answers like any prediction, without a name, because it is asked for reading and not for queueing."""
    answer = await service.predictions.Predict(pb.PredictRequest(job=a_job(), replay=True))
    assert answer.prediction == ""
    assert answer.verdict == VERDICT_ADMIT
    assert sum(line.bytes for line in answer.ledger) == answer.peak.device_bytes
