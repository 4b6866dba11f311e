"""What one submission asks of the scheduler: GPUs, nodes and where, from the fields of a job description. Pure.

Fields have the names of Slurm's `job_desc` (its C API and the Lua of job_submit); a change of a job has those of the job as it was beside
them, as `job_rec.<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.hooks.slurm.amounts import AT_LEAST_ONE, Amount
from peakgate.hooks.slurm.asked import PER_JOB, PER_NODE, PER_SOCKET, PER_TASK, Asked, gpus_asked, shape_of
from peakgate.hooks.slurm.fields import Fields
from peakgate.hooks.slurm.tres import GPU, SHARED, Item, items

PER = (PER_NODE, PER_JOB, PER_TASK, PER_SOCKET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One component of a submission, or a job as a change would leave it."""

    gpus: tuple[Asked, ...] = ()
    shares: tuple[Item, ...] = ()
    """Parts of a card that several jobs use at once: shards, or hundredths of MPS."""

    unread: tuple[str, ...] = ()
    """What may ask for GPUs and could not be read."""

    requests: Mapping[str, str] = field(default_factory=dict)
    """The request as it stands, by the field that it stands in."""

    nodes: Amount = AT_LEAST_ONE
    tasks: int | None = None
    tasks_per_node: int | None = None
    partitions: tuple[str, ...] = ()
    features: str = ""
    node_list: str = ""
    excluded: str = ""
    account: str = ""
    qos: str = ""
    user_id: int | None = None
    user_name: str = ""
    name: str = ""
    array: str = ""
    component: int | None = None
    """Which one of a heterogeneous job; only the first has the script."""

    comment: str = ""
    admin_comment: str = ""
    arguments: tuple[str, ...] = ()
    script: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    job_id: int | None = None
    is_change: bool = False

    @property
    def asks_for_gpus(self) -> bool:
        """Whether there is anything to judge."""
        return bool(self.gpus or self.shares or self.unread)

    @property
    def is_fraction(self) -> bool:
        """Whether the job gets less than a whole card: its memory cannot be held against the card's."""
        return bool(self.shares)

    @property
    def gpus_per_node(self) -> Amount | None:
        """On each node, of all types; None: not known, or no whole card."""
        known = [asked.per_node for asked in self.gpus if asked.per_node is not None]
        return Amount.sum(known) if known and len(known) == len(self.gpus) else None

    @property
    def gpu_count(self) -> Amount | None:
        """In all, of all types; None: no whole card."""
        return Amount.sum(asked.total for asked in self.gpus) if self.gpus else None

    @property
    def types(self) -> tuple[str, ...]:
        """The types of card that were named; an empty one stands for any."""
        return tuple(asked.type for asked in self.gpus)


def submission_of(fields: Mapping[str, object]) -> Submission:
    """Reads a job description, or a change together with the job it changes. Never raises: what is no text or number was not stated."""
    values = Fields(fields)
    requests = _requests(values)
    found, unread = _resources(requests)
    shape = shape_of(values)
    gpus, nodes = gpus_asked({per: [item for item in each if item.name == GPU] for per, each in found.items()}, shape)
    return Submission(
        gpus=gpus,
        shares=tuple(item for each in found.values() for item in each if item.name in SHARED),
        unread=unread,
        requests={per: text for per, text in requests.items() if text},
        nodes=nodes,
        tasks=shape.tasks,
        tasks_per_node=shape.tasks_per_node,
        partitions=_list(values.text("partition") or values.text("default_partition")),
        features=values.text("features"),
        node_list=values.text("req_nodes"),
        excluded=values.text("exc_nodes"),
        account=values.text("account") or values.text("default_account"),
        qos=values.text("qos") or values.text("default_qos"),
        user_id=values.number("user_id"),
        user_name=values.text("user_name"),
        name=values.text("name"),
        array=values.text("array_inx"),
        component=None if values.is_change else values.number("het_job_offset"),
        comment=values.text("comment"),
        admin_comment=values.text("admin_comment"),
        arguments=values.words("argv"),
        script=values.text("script"),
        environment=values.settings(),
        job_id=values.number("job_id"),
        is_change=values.is_change,
    )


def _requests(values: Fields) -> dict[str, str]:
    """By what resources are asked for; `gres` is the older name of what is asked for a node."""
    texts = {per: values.text(per) for per in PER}
    if not values.states(PER_NODE) and (values.states("gres") or not texts[PER_NODE]):
        texts[PER_NODE] = values.text("gres")
    return texts


def _resources(requests: Mapping[str, str]) -> tuple[dict[str, tuple[Item, ...]], tuple[str, ...]]:
    read = {per: items(text, is_gres=per == PER_NODE) for per, text in requests.items()}
    unread = (word for _, words in read.values() for word in words)
    return {per: found for per, (found, _) in read.items()}, tuple(word for word in unread if _may_be_gpu(word))


def _may_be_gpu(word: str) -> bool:
    return any(name in word.lower() for name in (GPU, *SHARED))


def _list(text: str) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)
