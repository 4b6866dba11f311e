"""What a shadow has shown, for people."""

from __future__ import annotations

import math

from rich.console import Console

from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.v1.calibration_service_pb2 import CalibrationTrial, TrialRule

_WORDS = {
    "exact_rows": "observations of which the need is known",
    "miss_rate": "of them passed its bound",
    "worst_group_miss_rate": "of the worst group with enough of them",
    "mean_bound_ratio": "mean bound over the active version's",
}


def in_short(trial: CalibrationTrial) -> str:
    """How many rules hold, and the figures of those that do not, in one line."""
    open_rules = [f"{rule.name} {_figure(rule)}, {_limit(rule)}" for rule in trial.rules if not rule.holds]
    return f"{len(trial.rules) - len(open_rules)} of {len(trial.rules)} rules hold" + (f" ({'; '.join(open_rules)})" if open_rules else "")


def print_trial(console: Console, trial: CalibrationTrial) -> None:
    """Each rule of promotion with its figure and whether it holds."""
    table = plain_table()
    for heading in ("rule of promotion", "figure", "limit", "holds", ""):
        table.add_column(heading, justify="right" if heading in ("figure", "limit") else "left", overflow="fold")
    for rule in trial.rules:
        about = _WORDS.get(rule.name, "") + (f": {rule.group}" if rule.group else "")
        table.add_row(rule.name, _figure(rule), _limit(rule), "yes" if rule.holds else "no", escape(about))
    console.print(table)
    theirs = f"{trial.active_misses} the active version's"
    console.print(f"of {trial.rows} scored observations {trial.misses} passed its bound, {theirs}", style="dim")
    if trial.behind:
        console.print("one came late: it is learned within a minute", style="dim")


def _figure(rule: TrialRule) -> str:
    if math.isnan(rule.figure):
        return "-"
    return f"{rule.figure:.0f}" if rule.name == "exact_rows" else f"{rule.figure:.3f}"


def _limit(rule: TrialRule) -> str:
    return f"at least {rule.limit:.0f}" if rule.name == "exact_rows" else f"at most {rule.limit:.3f}"
