"""Every metric of the agent, all under peakgate_agent_. Labels are few: which job holds a GPU stands in the rows that are reported."""

from __future__ import annotations

from peakgate.agent.helper_reports import REASONS
from peakgate.v1.metric import COUNTER, GAUGE, Label, Metric

SPOOL_FULL, SPOOL_FAILED = "spool_full", "spool_failed"
WATCHED, LOST = "watched", "lost"

_GPU = Label(name="gpu", bounded_by="GPUs and MIG slices of the node")
_FUNCTION = Label(name="function", bounded_by="functions of NVML that the agent calls")

METRICS: tuple[Metric, ...] = (
    Metric(kind=GAUGE, name="peakgate_agent_up", help="1 while NVML is open."),
    Metric(kind=GAUGE, name="peakgate_agent_paused", help="1 while NVML is left alone on request."),
    Metric(kind=GAUGE, name="peakgate_agent_resident_bytes", help="Resident memory of the agent."),
    Metric(kind=COUNTER, name="peakgate_agent_nvml_call_seconds_total", help="Wall time spent in NVML.", labels=(_FUNCTION,)),
    Metric(kind=COUNTER, name="peakgate_agent_nvml_calls_total", help="Calls of NVML.", labels=(_FUNCTION,)),
    Metric(
        kind=COUNTER,
        name="peakgate_agent_nvml_errors_total",
        help="Failed calls of NVML, by nvmlReturn_t.",
        labels=(_FUNCTION, Label(name="code", bounded_by="codes of nvmlReturn_t")),
    ),
    Metric(kind=GAUGE, name="peakgate_agent_process_period_seconds", help="Time between two process lists."),
    Metric(kind=GAUGE, name="peakgate_agent_process_lists_ratio", help="Share of time spent in process lists."),
    Metric(kind=GAUGE, name="peakgate_agent_gpu_watched", help="1 while the GPU answers.", labels=(_GPU,)),
    Metric(
        kind=GAUGE,
        name="peakgate_agent_gpu_state",
        help="1 for the state that the GPU is in.",
        labels=(_GPU, Label(name="state", values=(WATCHED, LOST))),
    ),
    Metric(kind=GAUGE, name="peakgate_agent_sample_age_seconds", help="Time since the GPU was last read.", labels=(_GPU,)),
    Metric(kind=GAUGE, name="peakgate_agent_unattributed_bytes", help="Memory of processes of no known job.", labels=(_GPU,)),
    Metric(kind=GAUGE, name="peakgate_agent_attribution_refused", help="1 when NVML's pids are not this machine's."),
    Metric(
        kind=GAUGE,
        name="peakgate_agent_gpu_held_idle",
        help="Containers that hold the GPU while no process uses it.",
        labels=(_GPU,),
    ),
    Metric(kind=GAUGE, name="peakgate_agent_spool_rows", help="Rows and events not yet acknowledged."),
    Metric(kind=GAUGE, name="peakgate_agent_spool_oldest_seconds", help="Age of the oldest row not yet acknowledged."),
    Metric(kind=GAUGE, name="peakgate_agent_answered_timestamp_seconds", help="When the service last answered; 0: not since the start."),
    Metric(kind=COUNTER, name="peakgate_agent_batches_total", help="Batches that the service answered."),
    Metric(kind=COUNTER, name="peakgate_agent_peaks_stored_total", help="Rows that the service stored."),
    Metric(kind=COUNTER, name="peakgate_agent_events_total", help="Job events that the service stored."),
    Metric(kind=COUNTER, name="peakgate_agent_send_failures_total", help="Attempts that found the service away."),
    Metric(
        kind=COUNTER,
        name="peakgate_agent_dropped_total",
        help="Rows and events that were dropped, by reason.",
        labels=(Label(name="reason", bounded_by="service's words for refused rows, and the spool's own two"),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_agent_helper_reports_total",
        help="Datagrams of in-process helpers, by outcome.",
        labels=(Label(name="outcome", values=REASONS),),
    ),
)
