"""What is attached to a job and how it is verified."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.hooks.slurm.attached import (
    JOB,
    LARGEST_COMMENT,
    LARGEST_DOCUMENT,
    LARGEST_ENCODED,
    PREDICTION,
    SCRIPT_HEAD,
    WORDS,
    Attached,
    AttachedError,
    attach,
    attached_job,
    document_of,
    is_of,
    read_attached,
    script_digest,
)
from peakgate.v1.document import parse_job
from peakgate.v1.training_job_pb2 import TrainingJob

ID = "predictions/0123456789abcdef0123456789abcdef"
SCRIPT = b"#!/bin/bash\n#SBATCH --gres=gpu:1\npython train.py\n"


def a_job(micro_batch_size: int = 2) -> TrainingJob:
    """A job of one model and batch."""
    return parse_job({"model": {"preset": "llama-3.1-8b"}, "batch": {"micro_batch_size": micro_batch_size}, "gpu": {"type": "h100-80gb"}})


def packed(content: bytes) -> str:
    """Content as a document is encoded."""
    return base64.b64encode(zlib.compress(content, 9)).decode()


def with_document(content: bytes) -> Attached:
    """An attachment whose digest is that of its content."""
    return Attached(encoded=packed(content), digest=hashlib.sha256(content).hexdigest())


def test_a_batch_job_carries_document_digest_and_prediction() -> None:
    """What is put into the environment is read out again, and the job is the same."""
    environment = attach(a_job(), prediction=ID, script=SCRIPT, try_reason="a short test", override="ticket-12").environment()
    read = read_attached(environment)
    assert set(environment) == {JOB, WORDS, PREDICTION}
    assert (read.prediction, read.try_reason, read.override) == (ID, "a short test", "ticket-12")
    assert attached_job(read, SCRIPT) == a_job()


def test_variables_that_are_always_exported_carry_the_same() -> None:
    """Under --export=NONE only SLURM_* reaches the job."""
    environment = attach(a_job(), prediction=ID, script=SCRIPT).environment(is_exported=False)
    assert all(name.startswith("SLURM_PEAKGATE_") for name in environment)
    assert attached_job(read_attached(environment), SCRIPT) == a_job()


def test_a_comment_carries_the_words_beside_the_users_own() -> None:
    """srun and salloc have no environment that a plugin sees; their comment stays readable, and is not doubled by a second run."""
    attached = attach(a_job(), prediction=ID)
    comment = attached.comment("project 7")
    again = replace(attached, digest=attached.digest).comment(comment)
    assert comment.startswith("project 7; peakgate: id=0123")
    assert again == comment
    read = read_attached({}, comment)
    assert (read.prediction, read.digest, attached_job(read)) == (ID, attached.digest, None)


def test_a_comment_that_would_be_too_long_stays_as_it_was() -> None:
    """Slurm refuses a job with a longer one; the submitter's words go first."""
    own = "x" * (LARGEST_COMMENT - 10)
    assert attach(a_job(), prediction=ID).comment(own) == own


def test_a_users_own_words_in_a_comment_are_kept() -> None:
    """`peakgate: model.preset=…` describes the job of an srun."""
    read = read_attached({}, "peakgate: model.preset=llama-3.1-8b try=for%20once batch.micro_batch_size=2; project 7")
    assert read.stated == "model.preset=llama-3.1-8b batch.micro_batch_size=2"
    assert read.try_reason == "for once"
    assert "model.preset=llama-3.1-8b" in replace(read, prediction=ID).comment("project 7")


def test_what_another_script_inherited_is_not_believed() -> None:
    """A job that submits the next one hands its environment down."""
    read = read_attached(attach(a_job(), prediction=ID, script=SCRIPT).environment())
    with pytest.raises(AttachedError) as caught:
        attached_job(read, SCRIPT + b"python other.py\n")
    assert caught.value.word == "SCRIPT_DIFFERS"


def test_a_prediction_that_somebody_exported_is_not_tied_to_a_script() -> None:
    """Without the script's digest the words belong to no script."""
    with pytest.raises(AttachedError, match="another script"):
        attached_job(read_attached({PREDICTION: ID}), SCRIPT)


def test_a_document_that_was_exchanged_is_not_believed() -> None:
    """The digest is that of the document."""
    small = attach(a_job(1), script=SCRIPT)
    with pytest.raises(AttachedError) as caught:
        attached_job(replace(small, encoded=attach(a_job(64)).encoded), SCRIPT)
    assert caught.value.word == "DIGEST_DIFFERS"


def test_a_stored_job_is_held_against_the_digest() -> None:
    """A prediction of another job cannot be borrowed."""
    attached = attach(a_job(2), prediction=ID)
    assert is_of(attached, a_job(2))
    assert not is_of(attached, a_job(3))
    assert not is_of(Attached(prediction=ID), a_job(2))


def test_only_the_head_of_a_script_is_digested() -> None:
    """The controller looks at no more; text and bytes come to the same, also with bytes that are no text."""
    script = b"#!/bin/sh\n# \xff\xfe\n" + b"x" * SCRIPT_HEAD
    assert script_digest(script) == script_digest(script[:SCRIPT_HEAD])
    assert script_digest(script[:SCRIPT_HEAD].decode("utf-8", "surrogateescape")) == script_digest(script)


def test_a_large_document_is_left_to_its_digest() -> None:
    """A traced profile has no place in an environment; the digest still finds the stored job."""
    job = a_job()
    job.frozen.extend(hashlib.sha256(str(number).encode()).hexdigest() for number in range(2000))
    attached = attach(job, prediction=ID, script=SCRIPT)
    assert not attached.encoded
    assert JOB not in attached.environment()
    assert attached_job(attached, SCRIPT) is None
    assert is_of(attached, job)


@pytest.mark.parametrize(
    ("attached", "want_word"),
    [
        (Attached(encoded="A" * (LARGEST_ENCODED + 1)), "TOO_LARGE"),
        (with_document(b" " * (LARGEST_DOCUMENT + 1)), "TOO_LARGE"),
        (Attached(encoded="not base64!"), "NOT_ENCODED"),
        (Attached(encoded=base64.b64encode(b"not deflated").decode()), "NOT_ENCODED"),
        (Attached(encoded=base64.b64encode(zlib.compress(b"{}" * 99)[:-4]).decode()), "NOT_ENCODED"),
        (with_document(b"\xff\xfe"), "NOT_A_JOB"),
        (with_document(b"[1]"), "NOT_A_JOB"),
        (with_document(b"[" * 100_000), "NOT_A_JOB"),
        (with_document(b'{"model":{"preset":"a"},"model":{"preset":"b"}}'), "NOT_A_JOB"),
        (with_document(b'{"batch":{}}'), "NOT_A_JOB"),
        (with_document(b'{"model":{"parameters":' + b"9" * 5000 + b"}}"), "NOT_A_JOB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_documents_are_refused_by_a_word(attached: Attached, want_word: str) -> None:
    """Bombs, rubbish, and documents that are no job."""
    with pytest.raises(AttachedError) as caught:
        attached_job(attached)
    assert caught.value.word == want_word


def test_a_bomb_is_not_unfolded() -> None:
    """A few kilobytes that stand for a gigabyte cost no more than the cap."""
    bomb = packed(b"\0" * (20 << 20))
    assert len(bomb) < LARGEST_ENCODED
    with pytest.raises(AttachedError) as caught:
        attached_job(Attached(encoded=bomb))
    assert caught.value.word == "TOO_LARGE"


@given(st.dictionaries(st.sampled_from([JOB, WORDS, PREDICTION, f"SLURM_{WORDS}"]), st.text(max_size=300)), st.text(max_size=2000))
def test_any_text_is_read_or_refused(environment: dict[str, str], comment: str) -> None:
    """Whatever a user puts there, nothing else is raised, and no control character comes out."""
    read = read_attached(environment, f"peakgate: {comment}")
    assert (read.prediction + read.digest + read.try_reason + read.override).isprintable()
    with suppress(AttachedError):
        attached_job(read)


@given(st.integers(1, 2**40), st.text(max_size=50))
def test_a_document_is_the_same_after_a_round_trip(number: int, name: str) -> None:
    """The digest of a job does not depend on who made the document of it."""
    job = parse_job({"model": {"parameters": number}, "name": name})
    assert document_of(parse_job(json.loads(document_of(job)))) == document_of(job)
