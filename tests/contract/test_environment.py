"""Names that several parts share: environment variables, ports, paths. Others rely on them, so they are frozen here."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.contract.sources import ROOT, files, sources

from peakgate.server.settings import Settings

# What a person or a scheduler sets.
SHARED = {"PEAKGATE_SERVER", "PEAKGATE_DATABASE_URL", "PEAKGATE_PREDICTION", "PEAKGATE_SOCKET"}
# What a workload of Kubernetes states, what `peakgate sbatch` is told, and what it hands to the plugins of Slurm.
SUBMISSION = {"PEAKGATE_SPEC", "PEAKGATE_MODE", "PEAKGATE_SUBMIT_SETTINGS", "PEAKGATE_JOB", "PEAKGATE_ATTACHED", "PEAKGATE_SUBMITTER"}
# What gives the simulated NVML its scenario and its clock.
SIMULATION = {"PEAKGATE_SIMULATED_NVML", "PEAKGATE_SIMULATED_NVML_CLOCK"}
# The service's settings. A new one is added here with its implementation; a rename breaks deployments.
SETTINGS = {
    "PEAKGATE_AUDIT_QUEUE_ROWS",
    "PEAKGATE_CACHE_ENTRIES",
    "PEAKGATE_CALIBRATION_PROMOTION",
    "PEAKGATE_CALIBRATION_HISTORY_DAYS",
    "PEAKGATE_CAREFUL_COVERAGE",
    "PEAKGATE_COVERAGE",
    "PEAKGATE_DATABASE_URL",
    "PEAKGATE_GPU_PREFERENCE",
    "PEAKGATE_GPU_PRICES",
    "PEAKGATE_GRPC_PORT",
    "PEAKGATE_HOST",
    "PEAKGATE_HTTP_PORT",
    "PEAKGATE_LOG_JSON",
    "PEAKGATE_LOG_LEVEL",
    "PEAKGATE_MODELS",
    "PEAKGATE_OOM_COST",
    "PEAKGATE_OPERATOR_RESERVE_BYTES",
    "PEAKGATE_QUIET_SECONDS",
    "PEAKGATE_REJECTION_COST",
    "PEAKGATE_RETENTION_HOURS",
    "PEAKGATE_PEAKS_RETENTION_DAYS",
    "PEAKGATE_EVENTS_RETENTION_DAYS",
    "PEAKGATE_SETTLE_SECONDS",
    "PEAKGATE_STOP_GRACE_SECONDS",
    "PEAKGATE_TRIES_PER_DAY",
}
PATHS = {"/run/peakgate/jobs", "/run/peakgate/agent.sock", "/run/gpustat", "/var/lib/kubelet/pod-resources/kubelet.sock"}
VARIABLE = re.compile(r"PEAKGATE_[A-Z0-9_]*[A-Z0-9]")


@cache
def literals() -> frozenset[str]:
    """Every string constant of the project's code that is not a docstring's sentence."""
    nodes = (node for source in sources() for node in ast.walk(source.tree) if isinstance(node, ast.Constant))
    return frozenset(node.value for node in nodes if isinstance(node.value, str))


def variables_in_code() -> set[str]:
    """Variables that the code names as whole string constants."""
    return {text for text in literals() if VARIABLE.fullmatch(text)}


def test_the_settings_of_the_service_are_the_promised_ones() -> None:
    """The service reads exactly these variables."""
    assert {f"PEAKGATE_{name.upper()}" for name in Settings.model_fields} == SETTINGS


def test_the_ports_are_the_promised_ones() -> None:
    """gRPC 50551 and HTTP 9551 unless somebody says otherwise."""
    fields = Settings.model_fields
    assert (fields["grpc_port"].default, fields["http_port"].default) == (50551, 9551)


def test_the_shared_variables_are_used() -> None:
    """Each shared name is read somewhere."""
    assert (SHARED | SUBMISSION) - variables_in_code() - {f"PEAKGATE_{name.upper()}" for name in Settings.model_fields} == set()


def test_the_code_reads_no_variable_that_nobody_knows() -> None:
    """A variable in the code is a shared one, a setting, one of the simulation or of a submission."""
    assert variables_in_code() - SHARED - SETTINGS - SIMULATION - SUBMISSION == set()


def test_the_shared_paths_are_used() -> None:
    """The drop-in folder is where schedulers' hooks write it."""
    assert {path for path in PATHS if not any(path in text for text in literals())} == set()


def test_variables_in_documents_exist() -> None:
    """A variable that a document names is one that the code reads, or one of the suite's own."""
    documents = [ROOT / "README.md", *(path for path in files() if path.is_relative_to(ROOT / "deploy"))]
    named = {name for path in documents for name in VARIABLE.findall(path.read_text())}
    assert {name for name in named if not name.startswith("PEAKGATE_TEST_")} - SHARED - SETTINGS - SUBMISSION == set()
