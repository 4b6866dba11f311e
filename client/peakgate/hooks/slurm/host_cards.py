"""The card of a job on the submit host: by the administrator's table, where one lies there, as the gate has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from peakgate.client.source import Source
from peakgate.hooks.slurm.card_table import read_table
from peakgate.hooks.slurm.cards import Cards
from peakgate.hooks.slurm.fitting import on_request
from peakgate.hooks.slurm.submission import Submission, submission_of
from peakgate.v1.training_job_pb2 import TrainingJob

COUNTED = {
    "gpus": "tres_per_job", "gpus_per_node": "tres_per_node", "gpus_per_task": "tres_per_task", "gpus_per_socket": "tres_per_socket",
}  # fmt: skip
"""Options that count GPUs, and the field of a job description in which Slurm writes them down (sbatch.c, opt.c)."""

NAMED = {
    "gres": "gres", "tres_per_task": "tres_per_task", "partition": "partition", "constraint": "features", "nodelist": "req_nodes",
    "exclude": "exc_nodes", "account": "account", "qos": "qos",
}  # fmt: skip
NUMBERS = {"ntasks": "num_tasks", "ntasks_per_node": "ntasks_per_node", "ntasks_per_gpu": "ntasks_per_gpu"}


def on_host_cards(source: Source, options: Mapping[str, str], path: Path) -> Source:
    """The source's job on the cards that its options may get; as it was without a table. Raises TableError."""
    if not isinstance(source.job, TrainingJob) or not path.exists():
        return source
    submission = asked_by(options)
    card = Cards(table=read_table(path)).choose(submission).card
    return replace(source, job=on_request(source.job, submission, card)) if card is not None else source


def asked_by(options: Mapping[str, str]) -> Submission:
    """What the options of a command line ask for."""
    fields: dict[str, object] = {field: options[name] for name, field in NAMED.items() if name in options}
    for name, field in COUNTED.items():
        if name in options:
            fields[field] = ",".join(f"gres:gpu:{part}" for part in options[name].split(","))
    fields |= {field: int(options[name]) for name, field in NUMBERS.items() if options.get(name, "").isdecimal()}
    least, _, most = options.get("nodes", "").partition("-")
    fields |= {field: int(text) for field, text in (("min_nodes", least), ("max_nodes", most or least)) if text.isdecimal()}
    return submission_of(fields)
