"""The examples of docs/helper.md are run as they stand, each on stand-ins for what its script would have."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.client.live.fakes import llama
from tests.unit.client.torch.frameworks import fake_lightning, fake_transformers
from tests.unit.client.torch.test_batches import tensor
from tests.unit.client.torch.test_training import ADMITS

from peakgate.client.torch import ask

EXAMPLES = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[4] / "docs/helper.md").read_text(encoding="utf-8"), re.DOTALL)


def test_there_is_an_example_for_each_way() -> None:
    """Trainer, Lightning, Accelerate, a loop, and only reports; the first two are two lines."""
    modules = [re.findall(r"peakgate\.client\.torch\.(\w+)", example) for example in EXAMPLES]
    assert modules == [["huggingface"], ["lightning"], ["accelerate"], ["loop"], ["reporter"]]
    assert [len(example.split("\n\n")) for example in EXAMPLES[:2]] == [2, 2]


@pytest.mark.parametrize("example", EXAMPLES, ids=["huggingface", "lightning", "accelerate", "loop", "reporter"])
def test_an_example_runs(monkeypatch: pytest.MonkeyPatch, example: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every batch reaches the step, every callback its trainer."""
    monkeypatch.setattr(ask, "PROGRAM", ADMITS)
    monkeypatch.setenv("PEAKGATE_SOCKET", "/nonexistent/agent.sock")
    fake_transformers(monkeypatch)
    fake_lightning(monkeypatch, "pytorch_lightning")
    done: list[object] = []
    names = {
        "trainer": SimpleNamespace(add_callback=done.append),
        "Trainer": lambda callbacks: done.append(callbacks[0]),
        "accelerator": SimpleNamespace(gradient_accumulation_steps=1, mixed_precision="no", num_processes=1, sync_gradients=True),
        "model": llama(),
        "optimizer": None,
        "loader": [{"input_ids": tensor(4, 128)}],
        "step": done.append,
    }
    exec(example, names)
    assert len(done) == 1
    assert set(capsys.readouterr().err.splitlines()) <= {"peakgate: ADMIT: fits"}
