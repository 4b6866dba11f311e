"""Shows the answers of a batch as they come, and keeps the exit status."""

from __future__ import annotations

from peakgate.client.connect import Outcome
from peakgate.client.errors import PeakgateError
from peakgate.client.options import Output
from peakgate.client.origin import Origin, placed
from peakgate.client.output import human_console, write_json
from peakgate.client.render.answer import print_answer, print_error, print_line
from peakgate.client.render.origin import print_origin, print_unread, print_warnings
from peakgate.v1.document import Plain, answer_to_dict
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict
from peakgate.v1.prediction_service_pb2 import SuggestResponse

STATUS_OF_VERDICT = {Verdict.VERDICT_ADMIT: 0, Verdict.VERDICT_REJECT: 1, Verdict.VERDICT_UNDECIDED: 3}

_STATUS_ORDER = (2, 4, 1, 3, 0)
"""Of several jobs the first of these that applies is the exit status."""


def status_of(answer: PredictResponse) -> int:
    """The exit status of an answer: a rejected job that was granted a try may run."""
    return 0 if answer.try_anyway.granted else STATUS_OF_VERDICT[answer.verdict]


def answer_and_origin(answer: PredictResponse | SuggestResponse, origin: Origin | None) -> dict[str, Plain]:
    """The answer's JSON; of a job that was read from a launch with what it was read as beside it, under `reading`."""
    value = answer_to_dict(answer)
    return value if origin is None else {**value, "reading": origin.as_dict()}


class Presenter:
    """Answers in order: JSON on standard output at once, text for people on the console.

    `many` says that more jobs than one may come: then a line each is for people when JSON has the details, and `json` is one array.
    """

    def __init__(self, output: Output, *, brief: bool, many: bool) -> None:
        self._output = output
        self._brief = brief
        self._many = many
        self._console = human_console(output)
        self._array: list[Plain] = []
        self._statuses: set[int] = set()

    def show(self, label: str, outcome: Outcome, origin: Origin | None = None) -> None:
        """Shows one job's answer or error, with what its launch was read as."""
        outcome = placed(outcome, origin) if isinstance(outcome, PeakgateError) else outcome
        self._statuses.add(outcome.exit_status if isinstance(outcome, PeakgateError) else status_of(outcome))
        self._show_json(outcome, origin)
        if isinstance(outcome, PeakgateError):
            print_error(self._console, label, outcome)
            print_unread(self._console, origin)
        elif self._many and (self._brief or self._output is not Output.table):
            print_line(self._console, label, outcome)
            print_warnings(self._console, origin)
        else:
            self._show_block(label, outcome)
            print_origin(self._console, origin)

    def finish(self) -> int:
        """Writes what had to wait for the last job; returns the exit status."""
        if self._output is Output.json and (self._many or self._array):
            write_json(self._array if self._many else self._array[0], Output.json)
        return next((status for status in _STATUS_ORDER if status in self._statuses), 0)

    def _show_json(self, outcome: Outcome, origin: Origin | None) -> None:
        if self._output is Output.table:
            return
        value = outcome.as_dict() if isinstance(outcome, PeakgateError) else answer_and_origin(outcome, origin)
        if self._output is Output.jsonl:
            write_json(value, Output.jsonl)
        else:
            self._array.append(value)

    def _show_block(self, label: str, answer: PredictResponse) -> None:
        if self._many and len(self._statuses) and self._output is Output.table:
            self._console.rule(style="dim", characters="─")
        print_answer(self._console, label, answer, brief=self._brief)
