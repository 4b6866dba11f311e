"""The simulated NVML library, compiled once for the agent's tests."""

from __future__ import annotations

import shutil

import pytest

from peakgate.agent.simulated.library import NO_COMPILER, SimulatedNvml, compiled_library


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> SimulatedNvml:
    """The library in this process; each test loads its own scenario."""
    if shutil.which("cc") is None:
        pytest.skip(f"no C compiler for the simulated NVML. {NO_COMPILER}")
    return SimulatedNvml(compiled_library(cache=tmp_path_factory.mktemp("cache")))
