"""Every metric of the Slurm gate, all under peakgate_gate_."""

from __future__ import annotations

from peakgate.client.errors import AWAY
from peakgate.hooks.slurm.rules import Mode
from peakgate.hooks.slurm.verdicts import ADMITTED, REFUSED, WOULD_REFUSE
from peakgate.v1.metric import COUNTER, GAUGE, HISTOGRAM, Label, Metric
from peakgate.v1.prediction_pb2 import Verdict

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
"""Up to what the controller waits."""

NO_VERDICT = "none"
VERDICTS = (*(Verdict.Name(number).removeprefix("VERDICT_") for number in Verdict.values() if number), NO_VERDICT)
UNCHECKED_BECAUSE = ("away", "no_training", "malformed", "fault")
ADMITTED_BY = ("operator", "override", "try", "partly")
"""First words of what admits a job that does not fit (verdicts.py)."""
CUT_BECAUSE = ("gone", "too_many", "not_allowed", "too_long", "cut_off", "slow")
"""What peers.py says of a connection that it cuts."""

METRICS: tuple[Metric, ...] = (
    Metric(kind=HISTOGRAM, name="peakgate_gate_decision_seconds", help="Time from a request to its reply.", buckets=SECONDS),
    Metric(
        kind=COUNTER,
        name="peakgate_gate_decisions_total",
        help="Decisions on submissions with GPUs.",
        labels=(
            Label(name="mode", values=tuple(each.value for each in Mode)),
            Label(name="verdict", values=VERDICTS),
            Label(name="outcome", values=(ADMITTED, REFUSED, WOULD_REFUSE)),
        ),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_gate_unchecked_total",
        help="Submissions admitted or refused without a verdict.",
        labels=(Label(name="reason", values=UNCHECKED_BECAUSE),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_gate_service_failures_total",
        help="Calls that the service did not answer, by gRPC status code.",
        labels=(Label(name="code", values=tuple(sorted(AWAY))),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_gate_connections_refused_total",
        help="Connections that were cut.",
        labels=(Label(name="reason", values=CUT_BECAUSE),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_gate_exceptions_total",
        help="Jobs admitted against their verdict.",
        labels=(Label(name="by", values=ADMITTED_BY),),
    ),
    Metric(kind=GAUGE, name="peakgate_gate_breaker_open", help="1 while the service is left alone."),
    Metric(kind=GAUGE, name="peakgate_gate_beside_ready", help="1 while the service beside the gate can judge."),
    Metric(
        kind=GAUGE,
        name="peakgate_gate_files_stale",
        help="1 while the rules or the cards have a fault, so that what they said before holds.",
    ),
    Metric(kind=COUNTER, name="peakgate_gate_journal_lost_total", help="Decisions that could not be written down."),
)
