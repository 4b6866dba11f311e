"""`peakgate trace`: real PyTorch modules on the meta device against the memory model, which never ran them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.cli import peakgate

from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.server.convert import job_from_message
from peakgate.v1.document import parse_job

if TYPE_CHECKING:
    from peakgate.client.tracer.factory import Subject

HERE = Path(__file__).parent
Layers = list[dict[str, object]]
pytestmark = pytest.mark.torch


def answer_to(document: dict[str, object]) -> Prediction:
    """The prediction for a job document."""
    return predict(job_from_message(parse_job(document)))


def conv(out: int, kernel: int, **fields: object) -> dict[str, object]:
    """A convolution as an operation."""
    return {"op": "conv2d", "out": out, "kernel": kernel, **fields}


def a_convolutional_network() -> tuple[Layers, Any, list[int], list[int]]:
    """Strided, transposed and 1 × 1 convolutions, three norms, pooling, in-place and plain activations, channel dropout."""
    from torch import nn

    layers: Layers = [
        conv(16, 7, stride=2, padding=3, bias=False),
        {"op": "batch_norm"},
        {"op": "relu", "inplace": True},
        {"op": "max_pool2d", "kernel": 3, "stride": 2, "padding": 1},
        conv(32, 3, padding=1, groups=4),
        {"op": "gelu"},
        {"op": "group_norm", "groups": 8},
        {"op": "silu", "inplace": True},
        {"op": "dropout2d", "p": 0.1},
        {"op": "avg_pool2d", "kernel": 2},
        {"op": "prelu"},
        {"op": "upsample", "scale": 2},
        {"op": "conv_transpose2d", "out": 8, "kernel": 2, "stride": 2},
        {"op": "leaky_relu"},
        {"op": "adaptive_avg_pool2d"},
        {"op": "flatten"},
        {"op": "linear", "out": 100},
    ]
    first = [nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    second = [nn.Conv2d(16, 32, 3, padding=1, groups=4), nn.GELU(), nn.GroupNorm(8, 32), nn.SiLU(inplace=True), nn.Dropout2d(0.1)]
    third = [nn.AvgPool2d(2), nn.PReLU(), nn.Upsample(scale_factor=2), nn.ConvTranspose2d(32, 8, 2, 2), nn.LeakyReLU()]
    network = nn.Sequential(*first, *second, *third, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 100))
    return layers, network, [3, 96, 96], []


def a_fully_connected_network() -> tuple[Layers, Any, list[int], list[int]]:
    """Linear layers with a batch norm, dropout and a softmax in front of the loss."""
    from torch import nn

    layers: Layers = [
        {"op": "linear", "out": 512},
        {"op": "batch_norm"},
        {"op": "tanh"},
        {"op": "dropout", "p": 0.5},
        {"op": "linear", "out": 300},
        {"op": "elu"},
        {"op": "linear", "out": 100},
        {"op": "softmax"},
    ]
    dense = [nn.Linear(400, 512), nn.BatchNorm1d(512), nn.Tanh(), nn.Dropout(0.5), nn.Linear(512, 300), nn.ELU(), nn.Linear(300, 100)]
    return layers, nn.Sequential(*dense, nn.Softmax(dim=-1)), [400], []


def a_segmenting_network() -> tuple[Layers, Any, list[int], list[int]]:
    """A small UNet: a skip connection that is concatenated, and one that is added; a class a pixel."""
    import torch
    from torch import nn

    class UNet(nn.Module):  # type: ignore[misc]  # torch is not always installed
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1), nn.Conv2d(32, 21, 1)
            self.down, self.up, self.act = nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.Sigmoid()

        def forward(self, x: Any) -> Any:
            skip = self.act(self.first(x))
            x = self.down(skip)
            x = self.second(x) + x
            return self.last(torch.cat((self.up(x), skip), dim=1))

    layers: Layers = [
        conv(16, 3, padding=1),
        {"op": "sigmoid", "name": "skip"},
        {"op": "max_pool2d", "kernel": 2, "name": "below"},
        conv(16, 3, padding=1),
        {"op": "add", "inputs": ["below"]},
        {"op": "upsample"},
        {"op": "concat", "inputs": ["skip"]},
        conv(21, 1),
    ]
    return layers, UNet(), [3, 64, 64], [64, 64]


def an_attending_network() -> tuple[Layers, Any, list[int], list[int]]:
    """nn.MultiheadAttention between two norms, on embedded ids."""
    from torch import nn

    class Attention(nn.Module):  # type: ignore[misc]  # torch is not always installed
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(64, 4, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.inner(x, x, x, need_weights=False)[0]

    layers: Layers = [
        {"op": "embedding", "size": 500, "out": 64},
        {"op": "layer_norm"},
        {"op": "attention", "heads": 4},
        {"op": "rms_norm"},
        {"op": "flatten"},
        {"op": "linear", "out": 10},
    ]
    network = nn.Sequential(nn.Embedding(500, 64), nn.LayerNorm(64), Attention(), nn.RMSNorm(64), nn.Flatten(), nn.Linear(64 * 128, 10))
    return layers, network, [128], []


NETWORKS = (a_convolutional_network, a_fully_connected_network, a_segmenting_network, an_attending_network)


def subject_of(network: Any, shape: list[int], target: list[int], dtype: str, batch: int) -> Subject:
    """The network with a batch, on the meta device."""
    import torch
    from torch.nn.functional import cross_entropy

    from peakgate.client.tracer.factory import Subject

    ids = len(shape) == 1 and isinstance(network[0], torch.nn.Embedding)
    x = torch.zeros(batch, *shape, dtype=torch.long if ids else getattr(torch, dtype), device="meta")
    y = torch.zeros(batch, *target, dtype=torch.long, device="meta")
    moved = network.to("meta", dtype=getattr(torch, dtype)).train()
    return Subject(model=moved, batch=(x, y), loss=lambda model, given: cross_entropy(model(given[0]), given[1]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("build", NETWORKS)
def test_a_plain_network_is_what_torch_makes_of_it(build: Callable[[], tuple[Layers, Any, list[int], list[int]]], dtype: str) -> None:
    """Parameters equal, saved bytes and the peak of live bytes within 1e-4, the same phase."""
    from peakgate.client.tracer.run import traced

    layers, network, shape, target = build()
    profile = traced(subject_of(network, shape, target, dtype, 16))
    model = {"operations": {"input": shape, "layers": layers}}
    recipe = {"float32": "fp32", "bfloat16": "bf16"}[dtype]
    got = answer_to({"model": model, "batch": {"micro_batch_size": 16}, "precision": {"recipe": recipe}, "loss": {"keep_logits": False}})
    want = answer_to({"model": {"profile": profile}})
    assert (got.parameters, got.peak_phase) == (want.parameters, want.peak_phase)
    assert got.saved_activation_bytes_per_layer * len(layers) == pytest.approx(want.saved_activation_bytes_per_layer, rel=1e-4)
    assert got.live_bytes == pytest.approx(want.live_bytes, rel=1e-4)
    assert got.allocated_bytes == pytest.approx(want.allocated_bytes, rel=1e-2)
    assert want.live_bytes == max(profile["phase_live_bytes"].values())


@pytest.mark.parametrize(("optimizer", "implementation"), [("adamw", "foreach"), ("adamw", "fused"), ("sgd", "foreach")])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("block", ["llama", "gpt2"])
def test_a_language_model_is_what_torch_makes_of_it(block: str, dtype: str, optimizer: str, implementation: str) -> None:
    """The memory model's family against a module written as the library writes it: live bytes within 1e-4, the same phase."""
    from tests.integration import tiny_models as tiny

    from peakgate.client.tracer.factory import subject_of as subject_named
    from peakgate.client.tracer.run import traced

    subject = subject_named(f"tests.integration.tiny_models:{block}", dtype)
    want = answer_to({"model": {"profile": traced(subject, optimizer=optimizer, implementation=implementation)}})
    sizes = {"layers": tiny.LAYERS, "hidden_size": tiny.HIDDEN, "heads": tiny.HEADS, "ffn_hidden_size": tiny.FFN, "vocab_size": tiny.WORDS}
    own = {"llama": {"kv_heads": tiny.KV_HEADS}, "gpt2": {"max_positions": tiny.SEQUENCE}}[block]
    document = {
        "model": {"transformer": {"block": block, **sizes, **own}},
        "batch": {"micro_batch_size": tiny.BATCH, "sequence_length": tiny.SEQUENCE},
        "precision": {"recipe": {"float32": "fp32", "bfloat16": "bf16"}[dtype]},
        "optimizer": {"name": optimizer, "implementation": implementation},
        "dropout": {"attention": 0.0, "hidden": 0.0},
        "loss": {"keep_logits": True},
    }
    got = answer_to(document)
    assert (got.parameters, got.peak_phase) == (want.parameters, want.peak_phase)
    assert got.live_bytes == pytest.approx(want.live_bytes, rel=1e-4)


def test_gradients_of_earlier_micro_batches_are_there_in_forward() -> None:
    """With accumulation the step that is recorded begins with all gradients alive."""
    from peakgate.client.tracer.factory import subject_of as subject_named
    from peakgate.client.tracer.run import traced

    one, two = (traced(subject_named("tests.integration.tiny_models:llama"), accumulation=steps) for steps in (1, 4))
    more = two["phase_live_bytes"]["forward"] - one["phase_live_bytes"]["forward"]
    assert more == one["gradient_bytes"]
    assert answer_to({"model": {"profile": two}}).live_bytes == max(two["phase_live_bytes"].values())


def test_the_command_writes_a_profile_that_predict_takes(tmp_path: Path) -> None:
    """trace writes a file, a job names it, predict answers; nothing but the profile is on standard output."""
    done = peakgate("trace", "tiny_models:gpt2", "--dtype", "bfloat16", "--out", tmp_path / "gpt2.json", folder=HERE)
    assert (done.status, done.out, done.err) == (0, "", "")
    profile = json.loads((tmp_path / "gpt2.json").read_text())
    assert profile["phase_live_bytes"]["backward"] > profile["phase_live_bytes"]["forward"]
    (tmp_path / "job.yaml").write_text("model: {profile: gpt2.json}\ngpu: {type: a100-80gb}\n")
    answer = peakgate("predict", tmp_path / "job.yaml", "--output", "jsonl")
    assert answer.status == 0
    assert answer.objects[0]["verdict"] == "ADMIT"


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("tiny_models", "is not MODULE:FACTORY"),
        ("no_such_module:f", "cannot import no_such_module"),
        ("tiny_models:no_such", "has no function no_such"),
        ("tiny_models:a_batch", "must return"),
        ("tiny_models:causal_loss", "fails on the meta device: TypeError"),
        ("tiny_models:peeking", "tiny_models.py:"),
        ("tiny_models:mlp", "returns no loss"),
    ],
)
def test_a_factory_that_cannot_be_traced_is_told_what_to_return(name: str, want: str) -> None:
    """One line on standard error, exit status 2."""
    done = peakgate("trace", name, folder=HERE)
    assert (done.status, done.out) == (2, "")
    assert want in " ".join(done.err.split())
