"""Both seeds: from when a job runs out of memory to the part of the ledger, and to what acts on it."""

from __future__ import annotations

from typing import Any

from tests.unit.memory.seed_rows.registry import row

from peakgate.client.diagnose.diagnosis import diagnose
from peakgate.client.diagnose.find import find_failure
from peakgate.client.diagnose.stages import BY_NAME

MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
FORWARD = f'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    output = model(x)\n{MESSAGE}\n'


def bar(step: int) -> str:
    """A progress bar of the training loop."""
    return f" {step // 100}%|██        | {step}/10000 [1:02:03<2:00:00,  1.00s/it]\n"


@row("s1-oom-when")
def _(*_: Any) -> None:
    """At step 1 the estimate was wrong; after hours it is fragmentation, a longer batch than usual, or a leak."""
    first = diagnose(find_failure([bar(0) + FORWARD]), "", None)
    assert any(all(word in note for word in ("logits", "micro-batch", "recomputation")) for note in first.notes)
    assert first.further is None
    late = diagnose(find_failure([bar(5000) + FORWARD]), "", None)
    assert late.further is BY_NAME["hours-later"]
    assert [cause.name for cause in late.further.causes] == ["fragmentation", "a longer batch than usual", "a leak"]
    assert "graph" in late.further.causes[-1].sign


@row("s2-oom-stage")
def _(*_: Any) -> None:
    """Each stage has its lines of the ledger; what does not act on them is said not to help."""
    want = {
        "load": ("parameters",),
        "forward": ("activations", "temporaries"),
        "backward": ("activations", "gradients", "temporaries"),
        "first-step": ("optimizer_states",),
        "longer-context": ("activations",),
    }
    assert all(BY_NAME[name].categories[: len(categories)] == categories for name, categories in want.items())
    not_at_load = " ".join(what for what, _ in BY_NAME["load"].helps_not)
    assert all(word in not_at_load for word in ("batch", "accumulation", "checkpointing"))
    assert any("parallelism.sharding" in fix for fix in BY_NAME["load"].helps)
    assert "attention" in BY_NAME["longer-context"].helps[0]
    assert "checkpointing" in BY_NAME["backward"].helps[0]
