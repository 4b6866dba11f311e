"""The card of a job on the submit host: by the administrator's table, where one lies there, as the gate has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from peakgate.client.source import Source
from peakgate.hooks.slurm.card_table import read_table
from peakgate.hooks.slurm.cards import Cards, Choice
from peakgate.hooks.slurm.fitting import on_request
from peakgate.hooks.slurm.steering import card_too_small, type_that_holds
from peakgate.hooks.slurm.submission import Submission, submission_of
from peakgate.v1.prediction_pb2 import PredictResponse
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCards:
    """What a submission may get by the table of this host; nothing where none lies there."""

    submission: Submission = field(default_factory=Submission)
    cards: Cards = field(default_factory=Cards)
    choice: Choice = field(default_factory=Choice)

    def under(self, source: Source) -> Source:
        """The source's job on the card that counts; as it was where there is none."""
        card = self.choice.card
        if card is None or not isinstance(source.job, TrainingJob):
            return source
        return replace(source, job=on_request(source.job, self.submission, card))

    def ask_for(self, answer: PredictResponse) -> str:
        """A type that it may get and that holds it, where it names none and not all do."""
        return type_that_holds(self.submission, self.cards, self.choice, answer)

    def too_small(self, answer: PredictResponse) -> str:
        """A card that it may get as well and that does not hold it."""
        return card_too_small(self.cards, self.choice, answer)


def host_cards(options: Mapping[str, str], path: Path) -> HostCards:
    """The cards that these options may get, by a table. Raises TableError."""
    if not path.exists():
        return HostCards()
    submission, cards = asked_by(options), Cards(table=read_table(path))
    return HostCards(submission=submission, cards=cards, choice=cards.choose(submission))


def asked_by(options: Mapping[str, str]) -> Submission:
    """What the options of a command line ask for."""
    fields: dict[str, object] = {column: options[name] for name, column in NAMED.items() if name in options}
    for name, column in COUNTED.items():
        if name in options:
            fields[column] = ",".join(f"gres:gpu:{part}" for part in options[name].split(","))
    fields |= {column: int(options[name]) for name, column in NUMBERS.items() if options.get(name, "").isdecimal()}
    least, _, most = options.get("nodes", "").partition("-")
    fields |= {column: int(text) for column, text in (("min_nodes", least), ("max_nodes", most or least)) if text.isdecimal()}
    return submission_of(fields)
