"""Records that go into the store and come out of it. Times are microseconds since the epoch, sizes bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NO_WAIT_US = 1 << 62
"""A moment that nothing is waited for before."""

AGENT = "agent"
"""Origin of an event that an agent told, and of what was made of its rows."""

REQUEST_CHARACTERS = 19
"""At the end of a prediction's name: what follows the time and the version in a UUID of version 7. A try's come from its request."""

TERMINAL_EVENTS = ("finished", "failed", "oom", "cancelled")
"""Job events after which nothing more is observed."""

EVENTS = ("started", *TERMINAL_EVENTS)

FLAGS: dict[str, int] = {
    "censored": 1,
    "preallocated": 2,
    "unattributed": 4,
    "mps": 8,
    "truncated": 16,
    "several": 32,
    "fluctuating": 64,
    "xid": 128,
    "oom": 256,
    "async_allocator": 512,
    "averaged": 1024,
}
"""Why a peak is not exact, as bits: flags of several reports are united by a bitwise or."""

IMPORTED = ("slurm", "prometheus")
"""Sources of figures that were imported: Slurm's accounting (gres/gpumem) and DCGM's metric in Prometheus."""

SAMPLED = ("sampled", "device", "")
"""Sources of what an agent saw at a moment: NVML's list of processes, the whole GPU's memory; empty: one that does not say which."""

ACCOUNTING = "accounting"
"""The driver's own maximum of a process."""

HELPER = "torch"
"""The in-process helper's figures of the caching allocator."""

SOURCES = ("sampled", ACCOUNTING, HELPER, "device", *IMPORTED)
"""How a peak was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionContent:
    """What equal predictions share."""

    job: bytes
    job_digest: str
    job_name: str
    verdict: str
    group: str
    required_bytes: int
    device_bytes: int
    bound_bytes: int
    total_bytes: int
    model_version: str
    calibration_version: str
    answer: bytes
    subject: str = ""
    """What the calibration knows the job as, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRow:
    """One prediction. `request_digest` tells whether a repeated `request_id` came with the same body."""

    prediction: str
    created_us: int
    request_id: str | None
    request_digest: str | None
    content: PredictionContent
    user: str = ""
    """Who asked, as the caller said; empty: nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryRow:
    """A rejected job that its user was let run all the same. `prediction` names the rejection."""

    prediction: str
    user: str
    reason: str
    created_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What became of a wish for a try. `prediction` is its name, of a repeated request that of the first; empty: the budget is spent.

    `created_us` are the moments of the user's tries within the day, this one included, the oldest first.
    """

    prediction: str
    created_us: tuple[int, ...]


Complete = Callable[[PredictionRow, Spent], PredictionRow]
"""The prediction with an answer that says what was spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRow:
    """What one prediction was of: the job, who asked, and what the calibration knows the job as (as text; empty: nothing)."""

    job_digest: str
    user: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Nodes that reported of late, and how many of them have been silent since while something ran on them."""

    nodes: int
    silent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPrediction:
    """A prediction with what was seen of its job. `observed_device_bytes` is 0 before anything was reported."""

    row: PredictionRow
    state: str
    observed_device_bytes: int
    observations: tuple[ObservationRow, ...] = ()
    """Of its attempts, the newest first."""
    tried: TryRow | None = None
    """The try that let it run though it was rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakRow:
    """The highest memory of one process on one GPU; process 0 is the whole job on that GPU. The first ten fields are the key."""

    cluster: str
    node: str
    gpu_uuid: str
    job: str
    restart: int
    prediction: str
    pid: int
    pid_start_ticks: int
    source: str
    step: str = ""
    gpu_name: str
    gpu_total_bytes: int
    peak_bytes: int
    torch_allocated_bytes: int
    torch_reserved_bytes: int
    first_us: int
    last_us: int
    peak_us: int
    samples: int
    gaps: int
    flags: int
    ended: int
    uid: int
    boot_id: str
    agent_version: str
    driver_version: str
    steps_done: int = 0
    longest_sequence: int = 0
    alloc_retries: int = 0
    ooms: int = 0
    longest_gap_us: int = 0
    xid: int = 0


@dataclass(frozen=True, slots=True)
class NodeCardRow:
    """Cards of one kind in one node. `cards`: how many different ones were seen."""

    cluster: str
    node: str
    gpu_name: str
    total_bytes: int
    cards: int
    seen_us: int


CardPlace = tuple[str, str, str, int]
"""Of a kind of card in the list of them: cluster, node, name and total memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePeakRow:
    """The caching allocator's peaks of one process in one phase. All but the two figures are the key."""

    cluster: str
    node: str
    gpu_uuid: str
    job: str
    restart: int
    prediction: str
    pid: int
    pid_start_ticks: int
    phase: str
    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """The start or the end of one attempt of a job."""

    cluster: str
    job: str
    restart: int
    prediction: str
    event: str
    event_us: int
    exit_code: int | None
    signal: int | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a job whose end was seen: its prediction's figures, its peaks, and its terminal event (empty: none)."""

    prediction: str
    job: str
    restart: int
    group: str
    required_bytes: int
    device_bytes: int
    model_version: str
    event: str
    finished_us: int
    peaks: tuple[PeakRow, ...]
    ended_well: bool = False
    """Somebody who knows its exit status said that it was 0."""
    card_bytes: int = 0
    """The total of the card that the job asked for; 0: none was stated."""
    bound_bytes: int = 0
    verdict: str = ""
    job_body: bytes = b""
    """The job document, serialised."""
    job_digest: str = ""
    subject: str = ""
    """What the calibration knew the job as when it was predicted, as text; empty: an older version stored it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationRow:
    """What became of an attempt: learned, or kept out with a reason word and a line for a person.

    `kind` is exact, lower, upper or dropped; `confidence` A to D or X; `origin` agent, sacct or prometheus (empty: nothing was seen).
    """

    prediction: str
    job: str
    restart: int
    observed_bytes: int
    predicted_bytes: int
    lower_bytes: int
    upper_bytes: int | None
    finished_us: int
    applied_us: int
    learned: bool
    reason: str
    message: str
    kind: str = "dropped"
    source: str = ""
    confidence: str = "X"
    origin: str = ""
    node: str = ""
    gpu_uuid: str = ""
    steps_done: int = 0
    longest_sequence: int = 0
    body: str = ""
    """What the calibration was told, as text; empty: nothing."""
    released: int = 0
    """Sequence of the version that learned it when a person let it; 0: nobody did."""
    released_by: str = ""
    released_why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOut:
    """An observation that was kept out, and the group of its prediction."""

    row: ObservationRow
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRow:
    """What the calibration was told of one attempt, as text, with what is needed to predict its job anew."""

    text: str
    released: bool
    model_version: str
    job_digest: str
    job_body: bytes
    longest_sequence: int


DAILY, ALARM, PROMOTED = "daily", "alarm", "promoted"
KEPT_KINDS = (DAILY, ALARM, PROMOTED)
"""Why a version is kept: the first of a day, one after which a level had moved, one that an operator switched to or left."""
SHADOW = "shadow"
"""Kind of a version that learned beside the active one, also when it has ended: it is no place to go back to."""

OPEN = 1 << 62
"""End of a range of versions that still grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow:
    """One version of the calibration. `groups` and `body` are JSON (a body is left out of lists); `parent` is the sequence of the version
    that it was made from (0: none). Before it is stored `sequence` is 0 and `version` the epoch, from which the store makes its name."""

    sequence: int
    parent: int = 0
    version: str
    state: str
    created_us: int
    observations: int
    groups: str
    body: str
    kind: str = ""
    """One of KEPT_KINDS: why it is kept; empty: it is not kept for long."""
    note: str = ""
    """One line for a person."""
    trial: str = ""
    """What a shadow version has shown so far, as JSON."""


Place = tuple[int, str, str, int]
"""Of an attempt in a history: its end in microseconds, its prediction, job and restart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRow:
    """An attempt that has ended, with the job as it was submitted. `body`: what the calibration was told, as text; empty: nothing."""

    prediction: str
    job: str
    restart: int
    created_us: int
    finished_us: int
    observed_bytes: int
    longest_sequence: int
    reason: str
    body: str
    job_body: bytes

    @property
    def place(self) -> Place:
        """Where the next page goes on."""
        return self.finished_us, self.prediction, self.job, self.restart


@dataclass(frozen=True, slots=True)
class Lease:
    """What a writer shows: its name among the replicas, and the fence with which it was let in."""

    holder: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """Name of the version that was active before (empty: none was), and how many observations were set aside."""

    before: str
    set_aside: int = 0


EndedKey = tuple[str, str, int, int]
"""Of an attempt on the list of ended ones: prediction, job, restart, and when its end was last told."""
