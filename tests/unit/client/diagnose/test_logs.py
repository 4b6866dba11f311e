"""The end of a log of any length."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from peakgate.client.diagnose.find import find_failure
from peakgate.client.diagnose.logs import MOST_BYTES, WINDOW_BYTES, windows
from peakgate.client.errors import InputError

OOM = b"CUDA out of memory. Tried to allocate 2.00 GiB."


def a_log(path: Path, behind: int) -> str:
    """A sparse file of four gigabytes with a failure so many bytes before its end."""
    with path.open("wb") as log:
        log.truncate(4 * 2**30)
        log.seek(4 * 2**30 - behind)
        log.write(b"\n" + OOM + b"\n")
    return str(path)


@pytest.mark.parametrize(
    ("behind", "want"), [(200, True), (WINDOW_BYTES + 20, True), (3 * WINDOW_BYTES, True), (MOST_BYTES + 2**20, False)]
)
def test_a_long_log_is_read_from_its_end(tmp_path: Path, behind: int, want: bool) -> None:
    """A failure near the end is found in a log of gigabytes, also across windows; beyond the limit nothing is read."""
    assert (find_failure(windows(a_log(tmp_path / "train.log", behind), io.BytesIO())) is not None) is want


def test_a_stream_is_kept_to_its_end() -> None:
    """Standard input is read to its end, and its beginning forgotten."""
    (text,) = windows("-", io.BytesIO(OOM + b"\n" + b"x" * (WINDOW_BYTES + 2**20) + b"\nlast"))
    assert text.endswith("last")
    assert "out of memory" not in text
    assert len(text) < WINDOW_BYTES + 2**18


def test_colours_and_returns_are_taken_away() -> None:
    """What a terminal would interpret is no part of the words."""
    (text,) = windows("-", io.BytesIO(b"\x1b[31mCUDA out of \x1b[0mmemory\r 5%|\xff\x00"))
    assert text == "CUDA out of memory\n 5%|\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("name", ["", "missing.log"])
def test_a_log_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    """A folder, or no file at all, is an error about the input."""
    with pytest.raises(InputError) as caught:
        list(windows(str(tmp_path / name), io.BytesIO()))
    assert caught.value.exit_status == 2
