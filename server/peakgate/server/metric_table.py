"""Every metric of the service. Labels are closed lists; of single jobs, users and models the store tells."""

from __future__ import annotations

from peakgate.calibration.calibrator import DUPLICATE, OUT_OF_ORDER
from peakgate.calibration.gate import KEPT_OUT
from peakgate.calibration.trust import DISTRUST
from peakgate.server.accuracy import FITTED, HELD, OOM, PASSED, UNKNOWN
from peakgate.server.decide import Ground, Verdict
from peakgate.server.distrust import REPORTING, SILENT
from peakgate.server.errors import CODES
from peakgate.server.intake import REASONS as PEAK_REASONS
from peakgate.server.kinds import FRAMEWORKS, GPU_MODELS
from peakgate.server.learning import LEARNED
from peakgate.server.observe import REASONS as OBSERVATION_REASONS
from peakgate.server.predictor import FITS
from peakgate.server.retention import TABLES
from peakgate.server.tries import OUTCOMES as TRY_OUTCOMES
from peakgate.v1 import calibration_service_pb2, catalog_service_pb2, prediction_service_pb2, telemetry_service_pb2
from peakgate.v1.callers import CALLERS
from peakgate.v1.metric import COUNTER, GAUGE, HISTOGRAM, OTHER, Label, Metric

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Around what hooks wait: a gate a quarter of a second, a webhook two."""
RATIOS = (0.75, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25, 1.5)

HTTP_PREDICT = "POST /v1/predict"

_PACKAGES = (prediction_service_pb2, telemetry_service_pb2, calibration_service_pb2, catalog_service_pb2)
METHODS = tuple(
    f"{service.name}/{method.name}"
    for package in _PACKAGES
    for service in package.DESCRIPTOR.services_by_name.values()
    for method in service.methods
)

_METHOD = Label(name="method", values=(*METHODS, HTTP_PREDICT))
_CODE = Label(name="code", values=("OK", *dict.fromkeys(code.name for code in CODES.values())))
_SOURCE = Label(name="source", values=CALLERS)
_VERDICT = Label(name="verdict", values=tuple(each.value for each in Verdict))
_GPU = Label(name="gpu_model", values=GPU_MODELS)
_FRAMEWORK = Label(name="framework", values=FRAMEWORKS)


def _words(name: str, values: tuple[str, ...]) -> Label:
    return Label(name=name, values=(*dict.fromkeys(values), OTHER))


METRICS: tuple[Metric, ...] = (
    Metric(kind=COUNTER, name="peakgate_rpcs_total", help="Calls by method and gRPC status code.", labels=(_METHOD, _CODE)),
    Metric(kind=HISTOGRAM, name="peakgate_rpc_seconds", help="Duration of answered calls.", labels=(_METHOD,), buckets=SECONDS),
    Metric(kind=COUNTER, name="peakgate_verdicts_total", help="Answers of Predict by who asked and verdict.", labels=(_SOURCE, _VERDICT)),
    Metric(
        kind=COUNTER,
        name="peakgate_verdict_grounds_total",
        help="Answers of Predict by what the verdict rests on.",
        labels=(Label(name="ground", values=tuple(each.value.replace(" ", "_") for each in Ground)),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_tries_total",
        help="Wishes to run a rejected job all the same, by what became of them.",
        labels=(Label(name="outcome", values=TRY_OUTCOMES),),
    ),
    Metric(kind=COUNTER, name="peakgate_answers_cached_total", help="Answers that were not computed again."),
    Metric(
        kind=COUNTER,
        name="peakgate_requests_refused_total",
        help="Requests that could not be judged or served, by reason.",
        labels=(_words("reason", tuple(CODES)),),
    ),
    Metric(kind=GAUGE, name="peakgate_audit_queue_rows", help="Predictions that wait for the database."),
    Metric(kind=COUNTER, name="peakgate_audit_dropped_total", help="Predictions that were not stored because the queue was full."),
    Metric(kind=GAUGE, name="peakgate_store_up", help="1: the last use of the database worked."),
    Metric(kind=COUNTER, name="peakgate_peaks_stored_total", help="Rows of observed peaks that were committed."),
    Metric(
        kind=COUNTER,
        name="peakgate_peaks_refused_total",
        help="Rows of peaks that were refused, by reason.",
        labels=(_words("reason", (*PEAK_REASONS, "BATCH_TOO_LARGE", "FIELD_INVALID")),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_rows_deleted_total",
        help="Rows that were old enough to go, by table.",
        labels=(Label(name="table", values=TABLES),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_observations_total",
        help="Ended jobs, by what became of them: LEARNED, or why not.",
        labels=(_words("outcome", (LEARNED, *OBSERVATION_REASONS, *KEPT_OUT, DUPLICATE, OUT_OF_ORDER)),),
    ),
    Metric(
        kind=HISTOGRAM,
        name="peakgate_observed_over_predicted_ratio",
        help="Observed device peak over the predicted one, of ended jobs whose whole peak was seen.",
        labels=(_GPU, _FRAMEWORK),
        buckets=RATIOS,
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_needs_total",
        help="Ended jobs of which it is known whether the need stayed within the bound that was given at Predict.",
        labels=(_GPU, _FRAMEWORK, Label(name="bound", values=(HELD, PASSED))),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_rejected_jobs_total",
        help="Rejected jobs that ran all the same (tries, shadow, warnings), by whether they fitted.",
        labels=(Label(name="outcome", values=(FITTED, OOM, UNKNOWN)),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_shadow_answers_total",
        help="Answers while a shadow is on trial, by what the active calibration says of the need and what the shadow would.",
        labels=(Label(name="active", values=tuple(FITS.values())), Label(name="shadow", values=tuple(FITS.values()))),
    ),
    Metric(kind=GAUGE, name="peakgate_calibration_writer", help="1: this server is the one that learns; of several one is."),
    Metric(kind=GAUGE, name="peakgate_calibration_observations", help="Observations behind the active calibration."),
    Metric(
        kind=GAUGE,
        name="peakgate_calibration_margin_ratio",
        help="Largest margin over the requirement of the groups of a GPU model and framework family.",
        labels=(_GPU, _FRAMEWORK),
    ),
    Metric(kind=GAUGE, name="peakgate_calibration_alarms", help="Levels of the calibration with an open alarm of drift."),
    Metric(
        kind=COUNTER,
        name="peakgate_answers_distrusted_total",
        help="Answers whose bound is a wide one because the calibration is not trusted, by reason.",
        labels=(_words("reason", DISTRUST),),
    ),
    Metric(kind=GAUGE, name="peakgate_calibration_clamped_ratio", help="Newest predicted jobs whose bound meets its limit, over all."),
    Metric(kind=GAUGE, name="peakgate_agents_silent_ratio", help="Nodes that owe news of what runs on them, over all that reported."),
    Metric(
        kind=GAUGE,
        name="peakgate_agents",
        help="Nodes whose agent reported in the last day; silent: something runs there and nothing came for an hour.",
        labels=(Label(name="state", values=(REPORTING, SILENT)),),
    ),
)
