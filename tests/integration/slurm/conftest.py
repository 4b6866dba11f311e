"""A Slurm that all tests of a process share; each test leaves it without jobs and without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.bench.programs import Program, peakgate_server
from tests.integration.slurm.cluster import Slurm, cluster, missing


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The service as a process, on a database of its own."""
    if absent := missing():
        pytest.skip(absent)
    with peakgate_server(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[Slurm]:
    """The running cluster. Skips where its programs are missing or we are not root."""
    if absent := missing():
        pytest.skip(absent)
    with cluster() as running:
        yield running


@pytest.fixture
def slurm(slurm_cluster: Slurm) -> Iterator[Slurm]:
    """The cluster for one test."""
    yield slurm_cluster
    slurm_cluster.reset()
