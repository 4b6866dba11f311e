"""Verdicts, who asks, how long it takes, and what was not checked."""

from __future__ import annotations

from form import RATE, Dashboard, Panel, by, hourly, quantiles

PREDICT = '{method=~"PredictionService/Predict|POST /v1/predict"}'

ADMISSION = Dashboard(
    uid="peakgate-admission",
    title="peakgate: Admission",
    rows=(
        (
            "Verdicts",
            (
                Panel(
                    title="Verdicts",
                    look_for="Answers a second.",
                    unit="reqps",
                    queries=((by("verdict", "peakgate_verdicts_total"), "{{verdict}}"),),
                ),
                Panel(
                    title="Who asks",
                    look_for="Slurm's gate and Kubernetes' webhook count as themselves, everybody else by the door.",
                    unit="reqps",
                    queries=((by("source", "peakgate_verdicts_total"), "{{source}}"),),
                ),
                Panel(
                    title="Rejected in the last hour",
                    look_for="Above a half it is often one template that everybody copies.",
                    unit="percentunit",
                    queries=(("peakgate_verdicts:rejected_ratio1h", "rejected"),),
                    shape="number",
                ),
                Panel(
                    title="What verdicts rest on",
                    look_for="`field decides` and `incomplete` are jobs that state too little.",
                    unit="reqps",
                    queries=((by("ground", "peakgate_verdict_grounds_total"), "{{ground}}"),),
                ),
                Panel(
                    title="Requests that could not be judged",
                    look_for="The five most frequent reasons; a new one often means a broken submit script.",
                    unit="reqps",
                    queries=((f"topk(5, {by('reason', 'peakgate_requests_refused_total')})", "{{reason}}"),),
                ),
                Panel(
                    title="Tries of rejected jobs",
                    look_for="Granted, or refused with the word for it, in an hour. Many say that rejections are too strict.",
                    unit="none",
                    queries=((hourly("outcome", "peakgate_tries_total"), "{{outcome}}"),),
                ),
            ),
        ),
        (
            "Time",
            (
                Panel(
                    title="Time of Predict",
                    look_for="The gate waits 0.15 s for it.",
                    unit="s",
                    queries=quantiles("peakgate_rpc_seconds", (0.5, 0.99), matchers=PREDICT, labels="method"),
                ),
                Panel(
                    title="Time of a Slurm decision",
                    look_for="The controller waits 0.25 s.",
                    unit="s",
                    queries=quantiles("peakgate_gate_decision_seconds", (0.5, 0.99)),
                ),
                Panel(
                    title="Time of a Kubernetes review",
                    look_for="The webhook gives up at 2 s, the API server at 3 s.",
                    unit="s",
                    queries=quantiles("peakgate_webhook_review_seconds", (0.5, 0.99)),
                ),
                Panel(
                    title="Calls by status",
                    look_for="Anything but OK deserves a look.",
                    unit="reqps",
                    queries=((by("code", "peakgate_rpcs_total"), "{{code}}"),),
                ),
                Panel(
                    title="Answers from memory",
                    look_for="Share of answers to jobs that were judged before under the same calibration.",
                    unit="percentunit",
                    queries=(
                        (f"sum(rate(peakgate_answers_cached_total{RATE})) / sum(rate(peakgate_verdicts_total{RATE}))", "from memory"),
                    ),
                ),
            ),
        ),
        (
            "Slurm",
            (
                Panel(
                    title="Decisions of the gate",
                    look_for="By mode and outcome, in an hour. `would_refuse` in shadow is what enforcing would do.",
                    unit="none",
                    queries=((hourly("mode, outcome", "peakgate_gate_decisions_total"), "{{mode}} {{outcome}}"),),
                ),
                Panel(
                    title="Without a verdict",
                    look_for="`no_training` is no fault; the others let jobs through unchecked.",
                    unit="none",
                    queries=((hourly("reason", "peakgate_gate_unchecked_total"), "{{reason}}"),),
                ),
                Panel(
                    title="Service away, as gates see it",
                    look_for="Failed calls by status; open: the gate leaves the service alone; beside: it can judge by itself.",
                    unit="none",
                    queries=(
                        (hourly("code", "peakgate_gate_service_failures_total"), "{{code}}"),
                        ("max(peakgate_gate_breaker_open)", "open"),
                        ("min(peakgate_gate_beside_ready)", "beside"),
                    ),
                ),
                Panel(
                    title="Admitted against the verdict",
                    look_for="Who or what let a job run that does not fit, in an hour.",
                    unit="none",
                    queries=((hourly("by", "peakgate_gate_exceptions_total"), "{{by}}"),),
                ),
                Panel(
                    title="Faults of the gate",
                    look_for="Files that cannot be read, journal lines that were lost, connections that were cut.",
                    unit="none",
                    queries=(
                        ("max(peakgate_gate_files_stale)", "stale files"),
                        ("sum(increase(peakgate_gate_journal_lost_total[1h]))", "journal lines lost"),
                        (hourly("reason", "peakgate_gate_connections_refused_total"), "cut: {{reason}}"),
                    ),
                ),
            ),
        ),
        (
            "Kubernetes",
            (
                Panel(
                    title="Reviews by outcome",
                    look_for="`unchecked` are jobs that were let through without a verdict.",
                    unit="reqps",
                    queries=((by("outcome", "peakgate_webhook_reviews_total"), "{{outcome}}"),),
                ),
                Panel(
                    title="Reviews by kind and verdict",
                    look_for="A kind that never has a verdict is one whose templates are not read.",
                    unit="reqps",
                    queries=((by("kind, verdict", "peakgate_webhook_reviews_total"), "{{kind}} {{verdict}}"),),
                ),
                Panel(
                    title="Added by the mutating webhook",
                    look_for="`annotation` alone: a node may lack the label of its GPUs' memory. `fault`: see its log.",
                    unit="reqps",
                    queries=((by("changed", "peakgate_webhook_patches_total"), "{{changed}}"),),
                ),
                Panel(
                    title="Let through by the API server",
                    look_for="Objects that it admitted without the webhook's answer, in an hour.",
                    unit="none",
                    queries=(('sum(increase(apiserver_admission_webhook_fail_open_count{name=~".*peakgate.*"}[1h]))', "fail open"),),
                ),
                Panel(
                    title="Certificate",
                    look_for="Time that is left. It is renewed long before two weeks.",
                    unit="s",
                    queries=(("min(peakgate_webhook_certificate_expiry_timestamp_seconds) - time()", "left"),),
                    shape="number",
                ),
                Panel(
                    title="State of the webhook",
                    look_for="Up: it is connected to the service; beside: it can judge by itself; stale: its modes cannot be read.",
                    unit="none",
                    queries=(
                        ("min(peakgate_webhook_service_up)", "service up"),
                        ("min(peakgate_webhook_beside_ready)", "beside"),
                        ("max(peakgate_webhook_config_stale)", "stale modes"),
                    ),
                ),
                Panel(
                    title="Faults of the webhook",
                    look_for="Requests that were no review, and certificates that could not be read again, in an hour.",
                    unit="none",
                    queries=(
                        (hourly("reason", "peakgate_webhook_requests_refused_total"), "{{reason}}"),
                        (hourly("outcome", "peakgate_webhook_certificate_reloads_total"), "certificate: {{outcome}}"),
                    ),
                ),
            ),
        ),
        (
            "Kueue",
            (
                Panel(
                    title="States that were set",
                    look_for="By reason, in an hour.",
                    unit="none",
                    queries=((hourly("reason", "peakgate_kueue_decisions_total"), "{{reason}}"),),
                ),
                Panel(
                    title="Workloads that wait",
                    look_for="With quota, for this check; the oldest for so many seconds. A queue stands still while it rises.",
                    unit="none",
                    queries=(
                        ("max(peakgate_kueue_waiting_workloads)", "waiting"),
                        ("max(peakgate_kueue_oldest_waiting_seconds)", "oldest, in seconds"),
                    ),
                ),
                Panel(
                    title="Time to a state",
                    look_for="From the controller's queue to the state.",
                    unit="s",
                    queries=quantiles("peakgate_kueue_decision_seconds", (0.5, 0.99)),
                ),
                Panel(
                    title="Controllers",
                    look_for="One leads; and seconds since the API server told something.",
                    unit="none",
                    queries=(
                        ("sum(peakgate_kueue_leader)", "leaders"),
                        ("min(time() - (peakgate_kueue_last_sync_timestamp_seconds > 0))", "since the last news, in seconds"),
                    ),
                ),
                Panel(
                    title="Calls that the API server refused",
                    look_for="By status, in an hour; 409 is a race that was lost, 403 a right that is missing.",
                    unit="none",
                    queries=((hourly("status", "peakgate_kueue_api_errors_total"), "{{status}}"),),
                ),
            ),
        ),
        (
            "The service",
            (
                Panel(
                    title="Up",
                    look_for="Programs that Prometheus can scrape.",
                    unit="none",
                    queries=(('sum by (job) (up{job=~"peakgate-.*"})', "{{job}}"),),
                ),
                Panel(
                    title="Waiting for the database",
                    look_for="Predictions in the queue, and those lost because it was full. Answers go on while the database is away.",
                    unit="none",
                    queries=(
                        ("max(peakgate_audit_queue_rows)", "waiting"),
                        ("sum(increase(peakgate_audit_dropped_total[1h]))", "dropped in the last hour"),
                        ("min(peakgate_store_up)", "database up"),
                    ),
                ),
                Panel(
                    title="Observed peaks",
                    look_for="Rows from agents that were committed, rows that were refused, and old ones that were deleted.",
                    unit="rowsps",
                    queries=(
                        (f"sum(rate(peakgate_peaks_stored_total{RATE}))", "stored"),
                        (f"sum(rate(peakgate_peaks_refused_total{RATE}))", "refused"),
                        (by("table", "peakgate_rows_deleted_total"), "deleted: {{table}}"),
                    ),
                ),
            ),
        ),
    ),
)
