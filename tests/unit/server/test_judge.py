"""The cached path of a request."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.server.test_assess import a_settled_snapshot, assessed
from tests.unit.server.test_subjects import DOCUMENT

from peakgate.calibration import Calibrator, Snapshot
from peakgate.calibration.trust import AGENTS_SILENT
from peakgate.server.invert import Solved
from peakgate.server.judge import LARGEST_CACHED_BYTES, Judge
from peakgate.server.memory import MemoryModel, memory_model
from peakgate.server.policy import Policy
from peakgate.server.subjects import subject_from
from peakgate.v1.document import parse_job
from peakgate.v1.training_job_pb2 import TrainingJob

GB = 1_000_000_000
FRAMEWORK = assessed(Snapshot()).subject.framework
REAL = parse_job(DOCUMENT).SerializeToString(deterministic=True)
"""A job of the real memory model, of which a settled snapshot knows the like."""


def job_bytes(*, sequences: int = 1, memory_bytes: int = 80 * GB, name: str = "") -> bytes:
    """A job of the test's memory model; 0 sequences: not stated."""
    job = TrainingJob(name=name)
    job.model.parameters = GB
    job.attention.implementation, job.checkpointing.mode = "eager", "none"
    if sequences:
        job.batch.micro_batch_size = sequences
    job.gpu.memory_bytes = memory_bytes
    return job.SerializeToString(deterministic=True)


def a_judge(memory: MemoryModel, cache_entries: int = 10) -> Judge:
    """Under the prior."""
    return Judge(memory, Calibrator(epoch="test").snapshot(), Policy(), cache_entries=cache_entries)


def test_an_answer_is_kept_until_the_snapshot_is_swapped(memory: MemoryModel) -> None:
    """Its bound belongs to the old calibration."""
    judge = a_judge(memory)
    judged = judge.judge(job_bytes())
    judge.remember(job_bytes(), judged)
    assert judge.cached(job_bytes()) is judged
    judge.swap(Calibrator(epoch="next").snapshot())
    assert judge.cached(job_bytes()) is None


def test_an_answer_that_was_computed_under_an_old_snapshot_is_not_kept(memory: MemoryModel) -> None:
    """The swap came while it was computed."""
    judge = a_judge(memory)
    judged = judge.judge(job_bytes())
    judge.swap(Calibrator(epoch="next").snapshot())
    judge.remember(job_bytes(), judged)
    assert judge.cached(job_bytes()) is None


def test_the_cache_forgets_what_was_not_used_for_longest_and_takes_no_huge_job(memory: MemoryModel) -> None:
    """Memory is bounded in entries and in bytes."""
    judge = a_judge(memory, cache_entries=2)
    one, two, three = (job_bytes(sequences=number) for number in (1, 2, 3))
    huge = job_bytes(name="x" * LARGEST_CACHED_BYTES)
    for each in (one, two):
        judge.remember(each, judge.judge(each))
    assert judge.cached(one) is not None
    judge.remember(three, judge.judge(three))
    judge.remember(huge, judge.judge(huge))
    assert [judge.cached(each) is not None for each in (one, two, three, huge)] == [True, False, True, False]


def test_changes_are_advised_where_they_can_decide(memory: MemoryModel) -> None:
    """For a job that is too large or barely fits; not for one that fits with room, nor for one that cannot be judged."""
    judge = a_judge(memory)
    advised = {
        "too large": job_bytes(sequences=5, memory_bytes=25 * GB),
        "barely": job_bytes(memory_bytes=22 * GB),
        "room": job_bytes(),
        "incomplete": job_bytes(sequences=0),
        "no gpu": job_bytes(memory_bytes=0),
    }
    found = {name: bool(judge.judge(each).answer.suggestions) for name, each in advised.items()}
    assert found == {"too large": True, "barely": True, "room": False, "incomplete": False, "no gpu": False}


def test_suggest_advises_even_where_predict_does_not(memory: MemoryModel) -> None:
    """It was asked to."""
    advised = a_judge(memory).advise(TrainingJob.FromString(job_bytes()), "batch.micro_batch_size")
    assert advised.suggestions
    assert (advised.largest_micro_batch_size, advised.solved) == (7, Solved(7, "largest"))


def test_a_replay_is_asked_for(memory: MemoryModel) -> None:
    """The figures of a replayed answer are those of the model's replay; the cache of plain answers does not hold it."""
    judge = a_judge(memory)
    plain, replayed = judge.judge(job_bytes()), judge.judge(job_bytes(), replay=True)
    assert replayed.answer.peak.reserved_bytes == plain.answer.peak.reserved_bytes + 1
    assert judge.cached(job_bytes()) is None


def test_what_decides_is_the_first_suggestion_of_both_calls(memory: MemoryModel) -> None:
    """Predict and Suggest name the field that decides before any change, and it fits."""
    message = TrainingJob.FromString(job_bytes(sequences=5, memory_bytes=25 * GB))
    message.ClearField("checkpointing")
    judge = a_judge(memory)
    for suggestions in (judge.judge(message.SerializeToString()).answer.suggestions, judge.advise(message, "").suggestions):
        assert dict(suggestions[0].changes)["checkpointing.mode"].string_value == "full"
        assert suggestions[0].fits


def test_a_brief_answer_searches_for_nothing(memory: MemoryModel) -> None:
    """The verdict of a rejected job and its ledger are those of the whole answer; the reason names no change."""
    judge, rejected = a_judge(memory), job_bytes(sequences=8)
    whole, short = judge.judge(rejected).answer, judge.judge(rejected, brief=True).answer
    assert (len(whole.suggestions) > 0, len(short.suggestions)) == (True, 0)
    assert whole.reason.startswith(f"{short.reason}; ")
    for answer in (whole, short):
        answer.ClearField("suggestions")
        answer.ClearField("reason")
    assert short == whole


def a_leaning_snapshot() -> Snapshot:
    """One user's jobs need three scales more than others, another one is a suspect, of nobody else anything is known."""
    return replace(a_settled_snapshot(), leanings={"c/1": 3.0}, suspects={("c/2", FRAMEWORK): 4.0})


def test_what_was_learned_of_a_user_moves_their_bound() -> None:
    """The leaning of one, the own penalty of another; an unknown user has the bound of everybody."""
    judge = Judge(memory_model(), a_leaning_snapshot(), Policy())
    bound = {user: judge.judge(REAL, user).answer.peak.bound_bytes for user in ("", "c/1", "c/2", "c/3")}
    assert bound[""] == bound["c/3"] < min(bound["c/1"], bound["c/2"])
    assert judge.judge(REAL, "c/1").answer.peak.required_bytes == judge.judge(REAL).answer.peak.required_bytes


def test_the_group_is_not_the_users() -> None:
    """The label that people see, and what is stored of the subject, but for whose it is."""
    judge = Judge(memory_model(), a_leaning_snapshot(), Policy())
    own, anybody = judge.judge(REAL, "c/1"), judge.judge(REAL)
    assert own.answer.calibration.group == anybody.answer.calibration.group
    assert replace(subject_from(own.content.subject), user="") == subject_from(anybody.content.subject)


def test_the_cache_does_not_grow_by_users_of_whom_nothing_is_known() -> None:
    """A thousand strangers share one answer; each known user has an own one."""
    judge = Judge(memory_model(), a_leaning_snapshot(), Policy())
    judged = judge.judge(REAL, "stranger")
    judge.remember(REAL, judged, "stranger")
    assert all(judge.cached(REAL, user) is judged for user in ("", "c/3", *(f"c/{number}" for number in range(1000, 2000))))
    assert judge.cached(REAL, "c/1") is None
    judge.remember(REAL, judge.judge(REAL, "c/1"), "c/1")
    assert judge.cached(REAL, "c/1") is not judged
    assert len(judge._cache) == 2


def test_what_the_service_tells_drops_the_answers(memory: MemoryModel) -> None:
    """And one that is computed meanwhile is not kept: equal jobs have equal answers under the same trust."""
    judge = a_judge(memory)
    judged = judge.judge(job_bytes())
    judge.remember(job_bytes(), judged)
    judge.tell(())
    assert judge.cached(job_bytes()) is judged
    judge.tell((AGENTS_SILENT,))
    assert judge.cached(job_bytes()) is None
    judge.remember(job_bytes(), judged)
    assert judge.cached(job_bytes()) is None
    assert judge.assessor.told == (AGENTS_SILENT,)
