"""What the in-process helper costs a training: CPU time a step with three phases, on counters that cost nothing to read."""

from __future__ import annotations

import statistics
import time

from tests.unit.client.torch.fakes import GIB, FakeCuda

from peakgate.client.torch.reporter import Reporter

PHASES = ("forward", "backward", "optimizer")
STEPS = 500


class StillCuda(FakeCuda):
    """The counters of an allocator that has stopped growing."""

    def memory_stats_as_nested_dict(self, device: int) -> dict[str, object]:
        """Always the same."""
        return self.stats

    def settle(self) -> None:
        """Holds 40 GiB from now on."""
        self.use(40 * GIB)
        self.stats = super().memory_stats_as_nested_dict(0)


def helper_step_seconds() -> float:
    """The median of so many steps after the first ones; no agent listens."""
    cuda = StillCuda()
    cuda.settle()
    reporter = Reporter(cuda=cuda, socket_path="/nonexistent/agent.sock")
    times = []
    for _ in range(STEPS):
        began = time.thread_time()
        for name in PHASES:
            with reporter.phase(name):
                pass
        reporter.step()
        times.append(time.thread_time() - began)
    reporter.close()
    return statistics.median(times)
