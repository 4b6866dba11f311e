"""What the replay of a site's history costs: CPU time of reading it, predicting its jobs and playing it under the usual policies."""

from __future__ import annotations

import json
import time
from itertools import islice

from tests.histories import a_history

from peakgate.client.history.read import read_lines
from peakgate.server.memory import memory_model
from peakgate.server.policy import Policy
from peakgate.server.simulation.past import PastReader
from peakgate.server.simulation.policies import candidates
from peakgate.server.simulation.result import Terms, simulate
from peakgate.v1.calibration_simulation_pb2 import PastAttempt

ATTEMPTS = 10_000
TERMS = Terms(override_share=0.05, oom_cost=19.0, rejection_cost=1.0)


def simulation_seconds(attempts: int = ATTEMPTS) -> float:
    """CPU seconds of a history of so many attempts."""
    lines = [json.dumps(each).encode() for each in islice(a_history(3 * attempts), attempts)]
    memory = memory_model()
    before = time.process_time()
    reader = PastReader(memory, reserve_bytes=0, now=time.time())
    history = [reader.read(each) for each in read_lines(lines) if isinstance(each, PastAttempt)]
    chosen = candidates((), site=Policy(), oom_cost=TERMS.oom_cost, rejection_cost=TERMS.rejection_cost)
    answer = simulate(history, chosen, TERMS, memory)
    assert answer.attempts == attempts
    return time.process_time() - before
