"""The gate's metrics are those of its table."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import generate_latest

from peakgate.hooks.slurm import peers
from peakgate.hooks.slurm.gate_metric_table import ADMITTED_BY, CUT_BECAUSE, METRICS
from peakgate.hooks.slurm.gate_metrics import GateMetrics, Watched


def an_exposition() -> str:
    """Of a gate that has done nothing but lose three lines of its journal."""
    metrics = GateMetrics()
    metrics.watch(
        Watched(is_breaker_open=lambda: False, is_beside_ready=lambda: True, are_files_stale=lambda: False, journal_lost=lambda: 3)
    )
    return generate_latest(metrics.registry).decode()


def test_every_metric_of_the_table_is_there_and_no_other() -> None:
    """With its help, and every series at 0."""
    text = an_exposition()
    shown = {
        name + ("_total" if kind == "counter" and not name.endswith("_total") else "")
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    }
    assert shown == {metric.name for metric in METRICS}
    assert all(metric.help in text for metric in METRICS)
    assert 'peakgate_gate_decisions_total{mode="warn",outcome="admitted",verdict="none"} 0.0' in text
    assert "peakgate_gate_journal_lost_total 3.0" in text
    assert "peakgate_gate_beside_ready 1.0" in text


def test_the_words_of_the_table_are_those_of_the_code() -> None:
    """Why connections are cut, and who admits a job against its verdict."""
    text = Path(str(peers.__file__)).read_text()
    said = set(re.findall(r'(?:refuse|_CutError)\("([a-z_]+)"', text)) | {"too_many", "not_allowed"}
    assert said == set(CUT_BECAUSE)
    verdicts = Path(str(peers.__file__)).with_name("verdicts.py").read_text()
    excuse = verdicts[verdicts.index("def _excuse") : verdicts.index("def _admitted_words")]
    words = {word.split()[0] for word in re.findall(r'return f?"([a-z ]+)', excuse)}
    assert words | {"try"} == set(ADMITTED_BY)
