"""Writes docs/metrics.md from the tables of metrics: `python deploy/prometheus/reference.py [FILE]`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from peakgate.v1.metric import Label, Metric

TARGET = Path(__file__).parents[2] / "docs" / "metrics.md"

TABLES = (
    ("The service", "peakgate-server", 9551, "peakgate.server.metric_table"),
    ("The agent", "peakgate-agent", 9552, "peakgate.agent.metric_table"),
    ("The Slurm gate", "peakgate-gate", 9553, "peakgate.hooks.slurm.gate_metric_table"),
    ("The Kubernetes webhook", "peakgate-webhook", 9554, "peakgate.hooks.kubernetes.metric_table"),
    ("The controller of Kueue's AdmissionCheck", "peakgate-kueue", 9555, "peakgate.hooks.kubernetes.kueue.metric_table"),
)
"""Program, job in Prometheus, port of /metrics, and the module with its table."""

HEAD = """# Metrics

Made by `make gen` from the tables in the code. Every name begins with `peakgate_`; units are base units; counters and histograms begin at 0
with every combination of their labels, so that a rate sees the first event. No label holds a job, a pod, a user or a model: a single job is
found by its prediction's id, in the logs and with `peakgate jobs`.

[Rules](../deploy/prometheus), [dashboards](../deploy/grafana) and the [runbook](runbook.md) rest on these.
"""


def tables() -> dict[str, tuple[Metric, ...]]:
    """Each program's table, by its job in Prometheus."""
    return {job: import_module(module).METRICS for _, job, _, module in TABLES}


def page() -> str:
    """The whole page."""
    found = tables()
    parts = [HEAD]
    for title, job, port, _ in TABLES:
        parts.append(f"## {title}\n\nJob `{job}`, port {port}.\n\n{_table(found[job])}\n")
    return "\n".join(parts)


def _table(metrics: Iterable[Metric]) -> str:
    rows = ["| metric | type | labels | what |", "|---|---|---|---|"]
    for metric in metrics:
        labels = "<br>".join(map(_label, metric.labels))
        buckets = f" Buckets: {', '.join(f'{each:g}' for each in metric.buckets)}." if metric.buckets else ""
        rows.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help}{buckets} |")
    return "\n".join(rows)


def _label(label: Label) -> str:
    values = ", ".join(label.values) if label.values else f"bounded by the {label.bounded_by}"
    return f"`{label.name}`: {values}"


def main() -> None:
    """Writes the page that the command line names, else the checked-in one."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
