"""One line of JSON a decision: what an operator audits, and what `peakgate slurm report` reads.

Each line is one write to a file that is opened anew in append mode, so that it can be renamed or cut away at any time (logrotate
without a signal), and several gates may share it. A thread of its own writes: a disk that hangs holds up no submission.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

MOST_WAITING = 10_000
MODE = 0o640


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`outcome`: admitted, refused, or would_refuse (in a milder mode than enforce); `checked`: whether somebody judged the job.

    `by`: service, stored (the submit host's prediction), beside (the gate's own, not recorded), or nobody. `admitted_by`: what admitted a
    job against its verdict: try, or the name of an override.
    """

    time: str
    operation: str
    cluster: str
    uid: int
    user: str = ""
    account: str = ""
    qos: str = ""
    partition: str = ""
    job_name: str = ""
    job_id: int = 0
    gpus: int = 0
    gpu_types: list[str] = field(default_factory=list)
    card: str = ""
    mode: str = ""
    verdict: str = ""
    prediction: str = ""
    outcome: str = ""
    checked: bool = False
    by: str = "nobody"
    reason: str = ""
    required_bytes: int = 0
    bound_bytes: int = 0
    usable_bytes: int = 0
    admitted_by: str = ""
    wish: str = ""
    milliseconds: float = 0.0

    def line(self) -> bytes:
        """The line."""
        return (json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":")) + "\n").encode("ascii")


class Journal:
    """Writes decisions; without a path none. What cannot be written is counted in `lost`."""

    def __init__(self, path: Path | None, tell: Callable[[str, str], None]) -> None:
        self._path, self._tell = path, tell
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING)
        self.lost = 0
        self._thread = threading.Thread(target=self._write_all, name="journal", daemon=True)
        if path is not None:
            self._thread.start()

    def note(self, decision: Decision) -> None:
        """Hands a decision over; never waits."""
        if self._path is None:
            return
        try:
            self._waiting.put_nowait(decision.line())
        except queue.Full:
            self.lost += 1

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Writes what waits."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join(timeout_seconds)

    def _write_all(self) -> None:
        while (line := self._waiting.get()) is not None:
            try:
                self._append(line)
            except OSError as error:
                if not self.lost:
                    self._tell("error", f"the journal cannot be written: {error}")
                self.lost += 1

    def _append(self, line: bytes) -> None:
        assert self._path is not None  # noqa: S101 - the thread runs only with a path
        number = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            os.write(number, line)
        finally:
            os.close(number)


def decisions(path: Path) -> Iterator[dict[str, object]]:
    """The decisions of a journal, as written; lines that are none (a crash cut them off) are left out."""
    with path.open("rb") as file:
        for line in file:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found
