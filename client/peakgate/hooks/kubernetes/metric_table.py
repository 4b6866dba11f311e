"""Every metric of the webhook, all under peakgate_webhook_."""

from __future__ import annotations

from peakgate.hooks.kubernetes.mutating import AFFINITY, ANNOTATION, NOTHING
from peakgate.hooks.kubernetes.outcomes import FAULT, OUTCOMES, VERDICTS
from peakgate.hooks.kubernetes.workloads import KINDS, OTHER_KIND
from peakgate.v1.metric import COUNTER, GAUGE, HISTOGRAM, Label, Metric

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
"""Up to what the API server waits."""

REFUSED_BECAUSE = ("not_post", "not_found", "content_type", "too_large", "too_slow", "malformed", "not_a_review", "too_many")

METRICS: tuple[Metric, ...] = (
    Metric(
        kind=COUNTER,
        name="peakgate_webhook_reviews_total",
        help="Reviews of the validating webhook by kind, verdict and outcome. unchecked: nobody judged in time; unread: the object does "
        "not say what it trains.",
        labels=(
            Label(name="kind", values=(*KINDS.values(), OTHER_KIND)),
            Label(name="verdict", values=VERDICTS),
            Label(name="outcome", values=OUTCOMES),
        ),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_webhook_patches_total",
        help="Reviews of the mutating webhook by what was added; an affinity comes with the annotation. They are in no other counter.",
        labels=(Label(name="changed", values=(AFFINITY, ANNOTATION, NOTHING, FAULT)),),
    ),
    Metric(kind=HISTOGRAM, name="peakgate_webhook_review_seconds", help="Time from a review to its answer.", buckets=SECONDS),
    Metric(
        kind=COUNTER,
        name="peakgate_webhook_requests_refused_total",
        help="Requests that were no review, by reason.",
        labels=(Label(name="reason", values=REFUSED_BECAUSE),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_webhook_certificate_reloads_total",
        help="Certificates that were read again, by outcome.",
        labels=(Label(name="outcome", values=("ok", "failed")),),
    ),
    Metric(
        kind=GAUGE,
        name="peakgate_webhook_certificate_expiry_timestamp_seconds",
        help="When the certificate in use ends; 0: none is in use.",
    ),
    Metric(
        kind=GAUGE,
        name="peakgate_webhook_config_stale",
        help="1: the file of modes has a fault, its last good state holds.",
    ),
    Metric(
        kind=GAUGE,
        name="peakgate_webhook_service_up",
        help="1: the connection to the service stands, and its last calls were answered. Right within two seconds, without any review.",
    ),
    Metric(kind=GAUGE, name="peakgate_webhook_beside_ready", help="1: the service beside the webhook can judge."),
)
