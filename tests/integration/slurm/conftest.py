"""A Slurm that all tests of a process share; each test leaves it without jobs and without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.slurm.cluster import Slurm, cluster, missing


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
