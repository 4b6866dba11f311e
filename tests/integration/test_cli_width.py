"""What a person sees on a terminal of 80 columns: a real one, of which the command asks the width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from contextlib import suppress

import pytest
from tests.integration.cli import EXAMPLES, PEAKGATE

COLUMNS = 80
# Lines that are copied, and so are left to the terminal to wrap.
COPIED = re.compile(r"(ADMIT|REJECT|UNDECIDED)  \S+")


def on_a_terminal(*arguments: object) -> list[str]:
    """The lines that the command writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PEAKGATE_")}
    environment = clean | {"COLUMNS": str(COLUMNS), "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen([str(PEAKGATE), *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        written = b"".join(iter(lambda: _some(ours), b""))
        process.wait(timeout=100)
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", written.decode()).replace("\r", "").split("\n")


def _some(terminal: int) -> bytes:
    with suppress(OSError):  # Linux: the other end is closed
        return os.read(terminal, 1 << 16)
    return b""


@pytest.mark.parametrize("name", ["llama-2-7b-lora-oom", "llama-2-7b-qlora", "llama-3.1-8b-fsdp8", "textbook-1.3b"])
@pytest.mark.parametrize(
    "arguments", [["suggest", "--solve", "batch.sequence_length", "--pareto"], ["predict"]], ids=["suggest", "predict"]
)
def test_every_line_fits_the_terminal(name: str, arguments: list[str]) -> None:
    """No line is wider, and no line of fields to write breaks between a field and its value."""
    verb, *rest = arguments
    lines = on_a_terminal(verb, EXAMPLES / f"{name}.yaml", *rest)
    assert [line for line in lines if len(line.rstrip()) > COLUMNS and not COPIED.match(line)] == []
    assert not [line for line in lines if re.search(r"^ {7,}[a-z_.]+:$", line.rstrip())]
    assert any(re.search(r"^    1\. \S", line) for line in lines) or verb == "predict"


def test_a_suggestion_is_a_block_of_lines() -> None:
    """Number and title, figures with their room, the field to write."""
    lines = [line.rstrip() for line in on_a_terminal("suggest", EXAMPLES / "textbook-1.3b.yaml")]
    place = next(index for index, line in enumerate(lines) if line.startswith("    1. "))
    title, figures, fields = lines[place : place + 3]
    assert title.strip()
    assert re.fullmatch(r" {7}\d+\.\d GB, fits with \d+\.\d GB to spare, .+", figures)
    assert re.match(r" {7}[a-z_.]+: \S", fields)
