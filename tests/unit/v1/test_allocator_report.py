"""The helper's datagram: small, whole both ways, and harmless whatever the bytes are."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.v1.allocator_report import (
    ASYNC,
    MAX_BYTES,
    MAX_NUMBER,
    MAX_TEXT,
    PHASES,
    AllocatorReport,
    BadReportError,
    PhaseReport,
    bare_uuid,
    decode,
    encode,
)

GIB = 1 << 30
BARE = "00000000-0000-4000-8000-000000000000"
REPORT = AllocatorReport(
    gpu_uuid=f"GPU-{BARE}",
    allocated_bytes=71 * GIB,
    reserved_bytes=74 * GIB,
    retries=2,
    ooms=1,
    steps_done=1200,
    longest_sequence=8192,
    phases=tuple(PhaseReport(phase=phase, allocated_bytes=70 * GIB, reserved_bytes=74 * GIB) for phase in PHASES),
    backend=ASYNC,
    conf="backend:cudaMallocAsync",
    prediction="predictions/p1",
)
SECRET = "do-not-repeat-this"
numbers = st.integers(0, MAX_NUMBER)
texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=MAX_TEXT)
reports = st.builds(
    AllocatorReport,
    gpu_uuid=st.sampled_from([BARE, f"GPU-{BARE}", f"MIG-{BARE}"]),
    phases=st.dictionaries(st.sampled_from(PHASES), st.tuples(numbers, numbers)).map(
        lambda pairs: tuple(PhaseReport(phase=name, allocated_bytes=one, reserved_bytes=two) for name, (one, two) in pairs.items())
    ),
    **dict.fromkeys(("allocated_bytes", "reserved_bytes", "retries", "ooms", "steps_done", "longest_sequence"), numbers),
    **dict.fromkeys(("backend", "conf", "prediction"), texts),
)


def payload(**changes: object) -> bytes:
    """A datagram with other values."""
    return json.dumps({**json.loads(encode(REPORT)), **changes}).encode()


def test_a_full_report_is_below_a_kilobyte() -> None:
    """Every phase, every figure, and still one small datagram that comes back as it was."""
    assert len(encode(REPORT)) < 600
    assert decode(encode(REPORT)) == REPORT


@given(reports)
def test_every_report_comes_back_as_it_was(report: AllocatorReport) -> None:
    """Also with the largest numbers and the longest texts it fits."""
    assert len(encode(report)) <= MAX_BYTES
    assert decode(encode(report)) == report


def test_texts_are_cut_and_made_printable() -> None:
    """The allocator's settings are the user's words: nothing in them keeps a report back."""
    conf = decode(encode(replace(REPORT, conf="größe:\n" + "x" * 1000))).conf
    assert (len(conf), conf[:8]) == (MAX_TEXT, "gr??e:?x")


@pytest.mark.parametrize(
    ("datagram", "want"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 4000, "no JSON"),
        (b"[1]", "no JSON object"),
        (b" " * (MAX_BYTES + 1), "longer than 4096 bytes"),
        (payload(v=2), "v: this agent understands version 1"),
        (payload(v=True), "v: this agent understands version 1"),
        (payload(gpu=f"GPU-{SECRET}"), "gpu: no UUID of a GPU"),
        (payload(gpu=None), "gpu: no UUID of a GPU"),
        (payload(allocated=-1), "allocated: no whole number"),
        (payload(allocated=True), "allocated: no whole number"),
        (payload(reserved=1.5), "reserved: no whole number"),
        (payload(reserved=float("nan")), "reserved: no whole number"),
        (payload(steps=MAX_NUMBER + 1), "steps: no whole number"),
        (payload(conf=SECRET * 40), "conf: no line"),
        (payload(prediction=f"{SECRET}\n"), "prediction: no line"),
        (payload(backend=[SECRET]), "backend: no line"),
        (payload(phases={SECRET: [1, 1]}), "phases: only these are known"),
        (payload(phases={"forward": [1]}), "phases.forward: no pair"),
        (payload(phases={"forward": [1, SECRET]}), "phases.forward: no whole number"),
        (payload(phases=[]), "phases: only these are known"),
        (payload(**{SECRET: 1}), "only these keys are known"),
    ],
)
def test_what_is_no_report_is_named_without_its_bytes(datagram: bytes, want: str) -> None:
    """The error says which field and what is allowed; nothing that the sender wrote reaches a log."""
    with pytest.raises(BadReportError) as raised:
        decode(datagram)
    assert str(raised.value).startswith(want)
    assert SECRET not in str(raised.value)


@given(
    st.binary(max_size=MAX_BYTES + 1)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(repr).map(str.encode)
)
def test_any_bytes_are_a_report_or_a_bad_report(datagram: bytes) -> None:
    """Nothing but BadReportError comes out, and a report is one that can be sent again."""
    with suppress(BadReportError):
        report = decode(datagram)
        assert decode(encode(report)) == report


@given(reports, st.integers(0, 4000), st.integers(0, 255))
def test_a_flipped_byte_does_no_harm(report: AllocatorReport, place: int, byte: int) -> None:
    """A report with one other byte is a report or a bad one."""
    datagram = bytearray(encode(report))
    datagram[place % len(datagram)] = byte
    with suppress(BadReportError):
        found = decode(bytes(datagram))
        assert decode(encode(found)) == found


def test_what_cannot_be_decoded_is_not_encoded() -> None:
    """A wrong figure shows up where it was made, not at the agent."""
    with pytest.raises(BadReportError, match="reserved"):
        encode(replace(REPORT, reserved_bytes=-1))


def test_the_kind_in_front_of_a_uuid_is_taken_off() -> None:
    """CUDA knows a GPU or a MIG instance by the sixteen bytes alone."""
    assert [bare_uuid(each) for each in (BARE, f"GPU-{BARE}", f"MIG-{BARE}")] == [BARE] * 3


def test_it_loads_neither_protobuf_nor_grpc() -> None:
    """A training process imports this module."""
    program = "import sys, peakgate.v1.allocator_report\nprint({'grpc', 'google.protobuf'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("set()\n", "")
