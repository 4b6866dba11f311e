"""What holds for every test: nothing is skipped in CI, optional tests run only when asked for, hypothesis has two profiles.

Order is random (pytest-randomly prints the seed) and warnings are errors (pyproject.toml).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.postgres import Cluster

# Marker to the variable that asks for its tests, and what they need. Without it they are not collected: they are another suite,
# not a gap in this one.
OPTIONAL = {
    "torch": ("PEAKGATE_TEST_TORCH", "runs real PyTorch (tests/constraints.txt)"),
    "gpu": ("PEAKGATE_TEST_GPU", "needs an NVIDIA GPU"),
    "apiserver": (
        "PEAKGATE_KUBE_APISERVER",
        "runs the kube-apiserver that the variable names and the kube-controller-manager beside it, with Debian's etcd-server",
    ),
    "slow": ("PEAKGATE_TEST_SLOW", "takes minutes (make soak)"),
}

# A shared machine stalls for longer than any deadline a law could have; the timeout of pytest still ends a hang.
settings.register_profile("suite", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", deadline=None, max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")  # --hypothesis-profile wins: its plugin loads later


def in_ci() -> bool:
    """Whether this is a CI run, where a skipped test is a failed one."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def is_asked_for(marker: str) -> bool:
    """Whether the environment asks for the tests with this marker."""
    return os.environ.get(OPTIONAL[marker][0], "") not in {"", "0"}


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers, and has every skip printed with its reason."""
    for marker, (variable, needs) in OPTIONAL.items():
        config.addinivalue_line("markers", f"{marker}: {needs}; collected when {variable}=1")
    config.option.reportchars += "s"


def pytest_report_header() -> list[str]:
    """Says which optional tests are not part of this run."""
    return [f"not asked for: tests marked {m} ({v}=1; {needs})" for m, (v, needs) in OPTIONAL.items() if not is_asked_for(m)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the optional tests that nobody asked for."""
    absent = [marker for marker in OPTIONAL if not is_asked_for(marker)]
    left_out = [item for item in items if any(item.get_closest_marker(marker) for marker in absent)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Twelve thousand tests live to the end: the collector of garbage need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turns a skip into a failure in CI (an expected failure stays one)."""
    report = yield
    if in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped, and in CI nothing may skip: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that skips itself while it is collected."""
    report = yield
    if in_ci() and report.outcome == "skipped":
        report.outcome, report.longrepr = "failed", f"skipped, and in CI nothing may skip: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Cluster]:
    """A PostgreSQL server that all tests share; each makes databases of its own on it. Skips where its programs are missing."""
    from tests.postgres import cluster, missing

    if absent := missing():
        pytest.skip(absent)
    with cluster() as server:
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: Cluster) -> Iterator[Cluster]:
    """A PgBouncer in transaction mode before the shared server."""
    from tests.postgres import bouncer

    with bouncer(postgres_server) as before:
        yield before
