"""How right predictions are, how well bounds hold, and whether what is learned from is fresh."""

from __future__ import annotations

from form import RATE, Dashboard, Panel, by, hourly, quantiles

KIND = '{gpu_model=~"$gpu_model",framework=~"$framework"}'
"""The jobs that the reader has chosen."""
ERROR = "peakgate_observed_over_predicted_ratio"

ACCURACY = Dashboard(
    uid="peakgate-accuracy",
    title="peakgate: Accuracy",
    variables=("gpu_model", "framework"),
    rows=(
        (
            "Error of predictions",
            (
                Panel(
                    title="Observed over predicted",
                    look_for="Device peaks of a day's ended jobs. Above 1 the prediction was too low, and the margin has to cover it.",
                    unit="none",
                    queries=quantiles(ERROR, (0.05, 0.5, 0.95), matchers=KIND, window="[1d]"),
                ),
                Panel(
                    title="Median by GPU and framework",
                    look_for="One that lies apart has something that the memory model does not count.",
                    unit="none",
                    queries=((f"gpu_model_framework:{ERROR}:p50_1d{KIND}", "{{gpu_model}} {{framework}}"),),
                ),
                Panel(
                    title="95th percentile by GPU and framework",
                    look_for="What margins have to cover.",
                    unit="none",
                    queries=((f"gpu_model_framework:{ERROR}:p95_1d{KIND}", "{{gpu_model}} {{framework}}"),),
                ),
                Panel(
                    title="Spread",
                    look_for="Jobs of an hour by the ratio of observed to predicted.",
                    unit="none",
                    queries=((f"sum by (le) (increase({ERROR}_bucket{KIND}[1h]))", "{{le}}"),),
                    shape="heat",
                ),
            ),
        ),
        (
            "Coverage",
            (
                Panel(
                    title="Needs that stayed within their bound",
                    look_for="Over a day. 95 % are promised by default.",
                    unit="percentunit",
                    queries=(("1 - peakgate_needs:passed_ratio1d", "covered"),),
                    shape="number",
                ),
                Panel(
                    title="Coverage by GPU and framework",
                    look_for="Lower than promised over many jobs: the calibration does not know that kind yet.",
                    unit="percentunit",
                    queries=((f"1 - gpu_model_framework:peakgate_needs:passed_ratio1d{KIND}", "{{gpu_model}} {{framework}}"),),
                ),
                Panel(
                    title="Known needs",
                    look_for="Ended jobs in an hour, by the side of their bound. The ratios beside rest on these.",
                    unit="none",
                    queries=((hourly("bound", "peakgate_needs_total", KIND), "{{bound}}"),),
                ),
                Panel(
                    title="Rejected jobs that ran all the same",
                    look_for="In shadow, in warn and as tries, over a week. Those that fitted were rejected in vain.",
                    unit="none",
                    queries=(("sum by (outcome) (increase(peakgate_rejected_jobs_total[7d]))", "{{outcome}}"),),
                ),
                Panel(
                    title="Answers beside a shadow calibration",
                    look_for="While one is on trial: whether the need fits by the active calibration, which answered, and by the shadow.",
                    unit="reqps",
                    queries=((by("active, shadow", "peakgate_shadow_answers_total"), "{{active}}, shadow: {{shadow}}"),),
                ),
                Panel(
                    title="Slurm in shadow",
                    look_for="What the gate would have said where it only watches, in an hour.",
                    unit="none",
                    queries=((hourly("verdict", "peakgate_gate_decisions_total", '{mode="shadow"}'), "{{verdict}}"),),
                ),
            ),
        ),
        (
            "Calibration",
            (
                Panel(
                    title="Largest margin",
                    look_for="What is added to the requirement, as a share of it. It shrinks as jobs are observed.",
                    unit="percentunit",
                    queries=((f"max by (gpu_model, framework) (peakgate_calibration_margin_ratio{KIND})", "{{gpu_model}} {{framework}}"),),
                ),
                Panel(
                    title="Observations",
                    look_for="Behind the active calibration, and the servers that learn: one at any time.",
                    unit="none",
                    queries=(
                        ("max(peakgate_calibration_observations)", "observations"),
                        ("sum(peakgate_calibration_writer)", "servers that learn"),
                    ),
                    shape="number",
                ),
                Panel(
                    title="Drift",
                    look_for="Levels with an open alarm: needs moved, often with a new driver or framework.",
                    unit="none",
                    queries=(("max(peakgate_calibration_alarms)", "open alarms"),),
                ),
                Panel(
                    title="Answers with a wide margin",
                    look_for="The calibration was not trusted, by reason. Lasting ones deserve a look at what was observed lately.",
                    unit="reqps",
                    queries=((by("reason", "peakgate_answers_distrusted_total"), "{{reason}}"),),
                ),
                Panel(
                    title="Why it may not be trusted",
                    look_for="Above a tenth of bounds at their limit, or a fifth of silent nodes, margins are wide ones.",
                    unit="percentunit",
                    queries=(
                        ("max(peakgate_calibration_clamped_ratio)", "bounds at their limit"),
                        ("max(peakgate_agents_silent_ratio)", "silent nodes"),
                    ),
                ),
                Panel(
                    title="Ended jobs by outcome",
                    look_for="Learned, or the most frequent reasons why not, in an hour.",
                    unit="none",
                    queries=((f"topk(8, {hourly('outcome', 'peakgate_observations_total')})", "{{outcome}}"),),
                ),
            ),
        ),
        (
            "Agents",
            (
                Panel(
                    title="Nodes",
                    look_for="Silent ones run something, and nothing came from them for an hour.",
                    unit="none",
                    queries=(("max by (state) (peakgate_agents)", "{{state}}"),),
                ),
                Panel(
                    title="Age of the last reading",
                    look_for="The ten worst agents. A GPU that is not read any more was lost, or its agent hangs.",
                    unit="s",
                    queries=(("topk(10, max by (instance) (peakgate_agent_sample_age_seconds))", "{{instance}}"),),
                ),
                Panel(
                    title="Time since the service answered",
                    look_for="The ten worst agents; an idle node has nothing to send.",
                    unit="s",
                    queries=(("topk(10, time() - (peakgate_agent_answered_timestamp_seconds > 0))", "{{instance}}"),),
                ),
                Panel(
                    title="Waiting and dropped",
                    look_for="Rows that wait for the service, the age of the oldest, and rows given up in an hour, by reason.",
                    unit="none",
                    queries=(
                        ("sum(peakgate_agent_spool_rows)", "waiting"),
                        ("max(peakgate_agent_spool_oldest_seconds)", "oldest, in seconds"),
                        (hourly("reason", "peakgate_agent_dropped_total"), "dropped: {{reason}}"),
                    ),
                ),
                Panel(
                    title="Agents that see no GPU",
                    look_for="Without a driver, or paused on request.",
                    unit="none",
                    queries=(
                        ("count(peakgate_agent_up == 1) or vector(0)", "see GPUs"),
                        ("count(peakgate_agent_up == 0) or vector(0)", "blind"),
                        ("sum(peakgate_agent_paused)", "paused"),
                    ),
                ),
                Panel(
                    title="GPUs",
                    look_for="Lost ones do not answer NVML; idle ones are held by a container and not used.",
                    unit="none",
                    queries=(
                        ("sum by (state) (peakgate_agent_gpu_state)", "{{state}}"),
                        ("count(peakgate_agent_gpu_held_idle) or vector(0)", "held idle"),
                        ("sum(peakgate_agent_attribution_refused)", "agents that cannot attribute"),
                    ),
                ),
                Panel(
                    title="Memory of no known job",
                    look_for="Processes that nobody submitted, or jobs that do not carry their prediction.",
                    unit="bytes",
                    queries=(("sum(peakgate_agent_unattributed_bytes)", "unattributed"),),
                ),
                Panel(
                    title="Cost of watching",
                    look_for="Share of a core that an agent spends in NVML, and its memory beside.",
                    unit="percentunit",
                    queries=((f"max(sum by (instance) (rate(peakgate_agent_nvml_call_seconds_total{RATE})))", "NVML"),),
                ),
                Panel(
                    title="Reports from inside trainings",
                    look_for="Datagrams of the helper in an hour, by what became of them.",
                    unit="none",
                    queries=((hourly("outcome", "peakgate_agent_helper_reports_total"), "{{outcome}}"),),
                ),
            ),
        ),
    ),
)
