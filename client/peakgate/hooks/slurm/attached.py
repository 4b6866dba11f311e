"""What the submit host attaches to a job, and how whoever reads it makes sure of it.

A batch job carries it in its environment: PEAKGATE_JOB is the job document (canonical JSON, deflated, in base64), PEAKGATE_ATTACHED words
about it (`id=… digest=… script=… in=… told=1`), PEAKGATE_PREDICTION the name of the prediction, for the agent. Slurm propagates SLURM_*
whatever --export says (sbatch(1)), so where the user's variables are left behind the same stands under names with that prefix. srun and
salloc, whose environment no plugin sees, carry the words in their comment, behind `peakgate:`.

Nothing of it is trusted: sizes are capped before anything is unpacked, the digest is that of the document, and a script's own digest
ties the words to one script, so that what a job hands down to the jobs which it submits itself counts for none of them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from peakgate.v1.document import DocumentError, job_to_dict, parse_job
from peakgate.v1.json_text import JsonError, read_json
from peakgate.v1.names import bare_id, full_name
from peakgate.v1.training_job_pb2 import TrainingJob

JOB, WORDS, PREDICTION = "PEAKGATE_JOB", "PEAKGATE_ATTACHED", "PEAKGATE_PREDICTION"
VARIABLES = (JOB, WORDS, PREDICTION)
ALWAYS_EXPORTED = "SLURM_"
"""Prefix of the variables that --export=NONE leaves a job (sbatch(1), --export)."""

IN_COMMENT = re.compile(r"(?<!\S)peakgate:[ \t]*([^;]*)")
ID = re.compile(r"[0-9A-Za-z_-]{1,128}")
DIGEST = re.compile(r"[0-9a-f]{64}")

LARGEST_ENCODED = 32 << 10
"""A job document deflates to about a kilobyte; one string of an environment holds 128 KiB (execve(2), MAX_ARG_STRLEN)."""
LARGEST_DOCUMENT = 1 << 20
"""The service takes no larger one."""
LARGEST_COMMENT = 1024
"""slurmctld refuses a longer one (job_mgr.c: _test_strlen of the comment)."""
LONGEST_REASON = 200
SCRIPT_HEAD = 64 << 10
"""So much of a script is looked at on the controller, and so much is digested."""


class AttachedError(Exception):
    """What is attached cannot be believed. `word`: TOO_LARGE, NOT_ENCODED, NOT_A_JOB, DIGEST_DIFFERS or SCRIPT_DIFFERS."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What came with a job. Empty: not stated. `encoded` is PEAKGATE_JOB as it stands; `stated`: words of the job document in a comment.

    `within`: the job inside which it was submitted, by which the controller's hook tells its own variables from inherited ones. `is_told`:
    the submit host has told the user the verdict.
    """

    prediction: str = ""
    digest: str = ""
    script: str = ""
    try_reason: str = ""
    override: str = ""
    encoded: str = ""
    stated: str = ""
    within: str = ""
    is_told: bool = False

    @property
    def words(self) -> str:
        """The short form: `id=… digest=… script=…`."""
        pairs = {
            "id": bare_id(self.prediction),
            "digest": self.digest,
            "script": self.script,
            "try": quote(self.try_reason[:LONGEST_REASON]),
            "override": quote(self.override[:LONGEST_REASON]),
            "in": self.within,
            "told": "1" if self.is_told else "",
        }
        return " ".join(f"{name}={value}" for name, value in pairs.items() if value)

    def environment(self, *, is_exported: bool = True) -> dict[str, str]:
        """The variables of a batch job; `is_exported`: whether --export hands the user's own ones on."""
        found = {JOB: self.encoded, WORDS: self.words, PREDICTION: self.prediction}
        prefix = "" if is_exported else ALWAYS_EXPORTED
        return {prefix + name: value for name, value in found.items() if value}

    def comment(self, own: str = "") -> str:
        """The user's own comment with the words in it; as it was where they do not fit."""
        kept = IN_COMMENT.sub("", own).strip(" ;")
        ours = f"peakgate: {' '.join(each for each in (self.words, self.stated) if each)}"
        joined = f"{kept}; {ours}" if kept else ours
        return joined if len(joined.encode()) <= LARGEST_COMMENT else own


def attach(job: TrainingJob, *, prediction: str = "", script: bytes = b"", try_reason: str = "", override: str = "") -> Attached:
    """What is attached to a job; a document that is too large for an environment is left to its digest and the service."""
    document = document_of(job)
    encoded = base64.b64encode(zlib.compress(document.encode(), 9)).decode()
    return Attached(
        prediction=prediction,
        digest=digest_of(document),
        script=script_digest(script) if script else "",
        try_reason=try_reason,
        override=override,
        encoded=encoded if len(encoded) <= LARGEST_ENCODED else "",
    )


def read_attached(environment: Mapping[str, str], comment: str = "") -> Attached:
    """What came with a job, by its environment and its comment; the environment's words win. What is malformed counts as not stated."""
    words, stated = _words_of_comment(comment)
    words |= dict(_pairs(_variable(environment, WORDS)))
    prediction = words.get("id", "") or bare_id(_variable(environment, PREDICTION))
    return Attached(
        prediction=full_name(prediction) if ID.fullmatch(prediction) else "",
        digest=_matched(DIGEST, words.get("digest", "")),
        script=_matched(DIGEST, words.get("script", "")),
        try_reason=_line(words.get("try", "")),
        override=_line(words.get("override", "")),
        encoded=_variable(environment, JOB),
        stated=stated,
        is_told=words.get("told") == "1",
    )


def attached_job(attached: Attached, script: bytes | str | None = None) -> TrainingJob | None:
    """The job of the document; None where none is attached. `script`: its first 64 KiB at least, where there is one.

    Raises AttachedError where the document is not the digest's, or the digest of the script not this one's.
    """
    if script and attached.script != script_digest(script):
        raise AttachedError("SCRIPT_DIFFERS", "what is attached belongs to another script")
    if not attached.encoded:
        return None
    document = _inflated(attached.encoded)
    if digest_of(document) != attached.digest:
        raise AttachedError("DIGEST_DIFFERS", "the attached document is not the one of the attached digest")
    return _parsed(document)


def is_of(attached: Attached, job: TrainingJob) -> bool:
    """Whether a stored prediction's job is the one that the digest was made of."""
    return bool(attached.digest) and attached.digest == digest_of(document_of(job))


def document_of(job: TrainingJob) -> str:
    """The job document as canonical JSON: what was stated, keys in order, without blanks."""
    return json.dumps(job_to_dict(job), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(document: str) -> str:
    """SHA-256 of a canonical document."""
    return hashlib.sha256(document.encode("utf-8", "surrogatepass")).hexdigest()


def script_digest(script: bytes | str) -> str:
    """SHA-256 of the first 64 KiB of a script."""
    content = script if isinstance(script, bytes) else script[:SCRIPT_HEAD].encode("utf-8", "surrogateescape")
    return hashlib.sha256(content[:SCRIPT_HEAD]).hexdigest()


def _inflated(encoded: str) -> str:
    if len(encoded) > LARGEST_ENCODED:
        raise AttachedError("TOO_LARGE", f"the attached document has {len(encoded)} characters, at most {LARGEST_ENCODED} are read")
    try:
        inflating = zlib.decompressobj()
        content = inflating.decompress(base64.b64decode(encoded, validate=True), LARGEST_DOCUMENT + 1)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise AttachedError("NOT_ENCODED", "the attached document is no deflated base64") from error
    if len(content) > LARGEST_DOCUMENT:
        raise AttachedError("TOO_LARGE", f"the attached document unfolds beyond {LARGEST_DOCUMENT} bytes")
    if not inflating.eof:
        raise AttachedError("NOT_ENCODED", "the attached document is cut off")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise AttachedError("NOT_A_JOB", "the attached document is no text in UTF-8") from error


def _parsed(document: str) -> TrainingJob:
    try:
        read = read_json(document)
        if not isinstance(read, dict):
            raise AttachedError("NOT_A_JOB", "the attached document is no mapping")
        return parse_job(read)
    except (JsonError, DocumentError, RecursionError, ValueError) as error:
        raise AttachedError("NOT_A_JOB", f"the attached document is no job: {str(error)[:LONGEST_REASON]}") from error


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(ALWAYS_EXPORTED + name) or ""


def _words_of_comment(comment: str) -> tuple[dict[str, str], str]:
    """Words about an attachment, and those that stand for a job document's own."""
    found = IN_COMMENT.search(comment[:LARGEST_COMMENT])
    if found is None:
        return {}, ""
    about = dict(_pairs(found[1]))
    return about, " ".join(word for word in found[1].split() if word.partition("=")[0] not in _ABOUT)


_ABOUT = frozenset({"id", "digest", "script", "try", "override", "in", "told"})


def _pairs(words: str) -> Iterator[tuple[str, str]]:
    for word in words[:LARGEST_COMMENT].split():
        name, equals, value = word.partition("=")
        if equals and name in _ABOUT:
            yield name, value


def _matched(pattern: re.Pattern[str], text: str) -> str:
    return text if pattern.fullmatch(text) else ""


def _line(text: str) -> str:
    line = unquote(text)[:LONGEST_REASON]
    return line if line.isprintable() else ""
