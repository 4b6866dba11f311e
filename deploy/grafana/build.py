"""Writes the dashboards of admission.py and accuracy.py as Grafana reads them: `python deploy/grafana/build.py [FOLDER]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from grafana_foundation_sdk.builders import common, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, GridPos, VariableRefresh
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from accuracy import ACCURACY
from admission import ADMISSION
from form import Dashboard, Panel

FOLDER = Path(__file__).parent
DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
COLUMNS, WIDTH, HEIGHT = 3, 8, 8  # Grafana's grid is 24 wide
DASHBOARDS = {"admission": ADMISSION, "accuracy": ACCURACY}
"""By the name of their file."""

Builder = timeseries.Panel | stat.Panel | heatmap.Panel


def dashboard_json(dashboard: Dashboard) -> str:
    """A dashboard; the reader chooses the Prometheus data source, and GPU models and frameworks where there are some to choose from."""
    made = build.Dashboard(dashboard.title).uid(dashboard.uid).tags(["peakgate"]).refresh("30s").time("now-6h", "now").editable()
    made = made.with_variable(build.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    for label in dashboard.variables:
        made = made.with_variable(_variable(label))
    top, ids = 0, count(1)
    for title, panels in dashboard.rows:
        made = made.with_row(build.Row(title).id(next(ids)).grid_pos(GridPos(x=0, y=top, w=COLUMNS * WIDTH, h=1)))
        for number, panel in enumerate(panels):
            x, y = number % COLUMNS * WIDTH, top + 1 + number // COLUMNS * HEIGHT
            made = made.with_panel(_panel(panel).id(next(ids)).grid_pos(GridPos(x=x, y=y, w=WIDTH, h=HEIGHT)))
        top += 1 + -(-len(panels) // COLUMNS) * HEIGHT
    return JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"


def _variable(label: str) -> build.QueryVariable:
    query = f"label_values(peakgate_needs_total, {label})"
    variable = build.QueryVariable(label).datasource(DATASOURCE).query(query).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    return variable.multi(True).include_all(True).all_value(".*")


def _panel(panel: Panel) -> Builder:
    made = _shape(panel.shape).title(panel.title).description(panel.look_for).unit(panel.unit).datasource(DATASOURCE)
    for place, (expression, legend) in enumerate(panel.queries):
        query = prometheus.Dataquery().expr(expression).legend_format(legend).ref_id(chr(ord("A") + place)).datasource(DATASOURCE)
        made = made.with_target(query.format(PromQueryFormat.HEATMAP) if panel.shape == "heat" else query)
    return made


def _shape(shape: str) -> Builder:
    if shape == "number":
        return stat.Panel().reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    if shape == "heat":
        return heatmap.Panel().calculate(False)
    legend = common.VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    return timeseries.Panel().legend(legend).tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI)).min(0)


def files() -> Iterator[tuple[str, str]]:
    """(name, content) of each dashboard's file."""
    for name, dashboard in DASHBOARDS.items():
        yield f"{name}.json", dashboard_json(dashboard)


def main() -> None:
    """Writes into the folder that the command line names, else beside this file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, content in files():
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
