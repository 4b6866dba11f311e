"""Writes the dashboard: `python deploy/grafana/build.py [FILE]`. The panels are the table below; the rest is Grafana's form."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

TARGET = Path(__file__).with_name("peakgate.json")
# Grafana 9.0 and later read this version of the dashboard's JSON and migrate it themselves.
SCHEMA_VERSION = 36
COLUMNS, WIDTH, HEIGHT = 3, 8, 8  # Grafana's grid is 24 wide
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Panel:
    """One graph: its title, what the reader should look for, its unit and its queries with their legends."""

    title: str
    description: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def quantile(share: float, metric: str) -> str:
    """A quantile of a histogram over the rate interval."""
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{RATE})))"


PANELS = (
    Panel("Verdicts", "Answers a second.", "reqps", ((f"sum by (verdict) (rate(peakgate_verdicts_total{RATE}))", "{{verdict}}"),)),
    Panel(
        "Calls by status",
        "Anything but OK deserves a look.",
        "reqps",
        ((f"sum by (method, code) (rate(peakgate_rpcs_total{RATE}))", "{{method}} {{code}}"),),
    ),
    Panel(
        "Time of a call",
        "Submission hooks wait for this.",
        "s",
        tuple((quantile(share, "peakgate_rpc_seconds"), f"p{share * 100:g}") for share in (0.5, 0.99)),
    ),
    Panel(
        "Requests that could not be judged",
        "By reason; a new one often means a broken submit script.",
        "reqps",
        ((f"sum by (reason) (rate(peakgate_requests_refused_total{RATE}))", "{{reason}}"),),
    ),
    Panel(
        "Observed over predicted",
        "Device peaks of ended jobs over their predictions. Above 1 the prediction was too low, and the margin has to cover it.",
        "none",
        tuple((quantile(share, "peakgate_observed_over_predicted_ratio"), f"p{share * 100:g}") for share in (0.05, 0.5, 0.95)),
    ),
    Panel(
        "Margin by group",
        "What is added to the requirement, as a share of it. It shrinks as jobs are observed.",
        "percentunit",
        (("max by (group) (peakgate_calibration_margin_ratio)", "{{group}}"),),
    ),
    Panel(
        "Answers with a wide margin",
        "The calibration was not trusted, by reason. Lasting ones deserve a look at what was observed lately.",
        "reqps",
        ((f"sum by (reason) (rate(peakgate_answers_distrusted_total{RATE}))", "{{reason}}"),),
    ),
    Panel(
        "Why the calibration may not be trusted",
        "Above a tenth of bounds at their limit, or a fifth of silent nodes, margins are wide ones.",
        "percentunit",
        (
            ("max(peakgate_calibration_clamped_ratio)", "bounds at their limit"),
            ("max(peakgate_agents_silent_ratio)", "silent nodes"),
        ),
    ),
    Panel(
        "Tries of rejected jobs",
        "Granted, or refused with the word for it, in the last hour. Many that fit say that rejections are too strict.",
        "none",
        (("sum by (outcome) (increase(peakgate_tries_total[1h]))", "{{outcome}}"),),
    ),
    Panel(
        "Ended jobs by outcome",
        "Learned, or kept out with the reason.",
        "none",
        (("sum by (outcome) (increase(peakgate_observations_total[1h]))", "{{outcome}}"),),
    ),
    Panel(
        "Observed peaks",
        "Rows from agents that were committed, rows that were refused, and old ones that were deleted.",
        "rowsps",
        (
            (f"sum(rate(peakgate_peaks_stored_total{RATE}))", "stored"),
            (f"sum by (reason) (rate(peakgate_peaks_refused_total{RATE}))", "refused: {{reason}}"),
            (f"sum by (table) (rate(peakgate_rows_deleted_total{RATE}))", "deleted: {{table}}"),
        ),
    ),
    Panel(
        "Waiting for the database",
        "Predictions in the queue, and those lost because it was full. The service answers while the database is away.",
        "none",
        (
            ("max(peakgate_audit_queue_rows)", "waiting"),
            ("sum(increase(peakgate_audit_dropped_total[1h]))", "dropped in the last hour"),
            ("min(peakgate_store_up)", "database up"),
        ),
    ),
    Panel(
        "GPUs by age of the last reading",
        "A GPU that is not read any more was lost, or its agent hangs.",
        "s",
        (("max by (instance) (peakgate_agent_sample_age_seconds)", "{{instance}}"),),
    ),
    Panel(
        "Agents: waiting and dropped",
        "Rows that wait for the service, and rows given up in the last hour, by reason.",
        "none",
        (
            ("sum(peakgate_agent_spool_rows)", "waiting"),
            ("sum by (reason) (increase(peakgate_agent_dropped_total[1h]))", "dropped: {{reason}}"),
        ),
    ),
    Panel(
        "Up",
        "Services and agents that Prometheus can scrape.",
        "none",
        (('sum by (job) (up{job=~"peakgate-.*"})', "{{job}}"),),
    ),
)


def panel_json(index: int, panel: Panel) -> dict[str, object]:
    """Grafana's form of a panel, at its place in the grid."""
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": index % COLUMNS * WIDTH, "y": index // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": DATASOURCE, "expr": query, "legendFormat": legend}
            for place, (query, legend) in enumerate(panel.queries)
        ],
    }


def dashboard() -> dict[str, object]:
    """The whole dashboard; the Prometheus data source is chosen by the reader."""
    return {
        "uid": "peakgate",
        "title": "peakgate",
        "tags": ["gpu", "admission"],
        "schemaVersion": SCHEMA_VERSION,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}]},
        "panels": [panel_json(index, panel) for index, panel in enumerate(PANELS)],
    }


def main() -> None:
    """Writes the file that the command line names, else the checked-in one."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_text(json.dumps(dashboard(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
