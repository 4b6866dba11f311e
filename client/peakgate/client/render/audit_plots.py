"""The plots of an audit, each a figure with a title that says what it shows, what its marks mean, and the same as a table."""

from __future__ import annotations

from peakgate.client.render.audit_figure import Figure
from peakgate.client.render.audit_jobs import beyond, needed
from peakgate.client.render.audit_time import over_time
from peakgate.client.render.audit_waste import waste
from peakgate.v1.calibration_report_pb2 import ReportCalibrationResponse


def figures(report: ReportCalibrationResponse) -> list[Figure]:
    """Those that the report has something for."""
    made = [over_time(report)] if report.days else []
    if report.points:
        made.append(needed(report))
    if any(point.kind != "lower" or point.missed for point in report.points):
        made.append(beyond(report))
    groups = [group for group in report.groups if group.HasField("mean_waste_bytes")]
    if groups:
        made.append(waste(report.overall, groups))
    return made
