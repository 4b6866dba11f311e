"""Plain networks (`model.operations`): shapes, what each operation keeps, skip connections, and networks measured on a GPU."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.memory.builders import job_of

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.favourable import favourable
from peakgate.memory.job import Job
from peakgate.memory.plain.network import NetworkError, network_of
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError, Prediction

ROWS = [json.loads(line) for line in (Path(__file__).parents[2] / "golden/gpumemnet_mlp.jsonl").read_text().splitlines()]
MIB = 1 << 20
CONTEXT_MIB = 1440
"""What the card of the measured networks held beside PyTorch's allocator."""


def a_network(layers: Sequence[object], shape: list[int], batch: object = 2, **fields: object) -> Job:
    """A job of these operations in float32 with SGD: nothing but weights, gradients and what is kept."""
    operations = {"input": shape, "loss": fields.pop("loss", "cross_entropy"), "layers": list(layers)}
    common = {"optimizer": {"name": "sgd"}, "precision": {"recipe": "fp32"}, "framework": {"name": "torch"}}
    return job_of({"model": {"operations": operations}, "batch": {"micro_batch_size": batch}, **common, **fields})


def layers_of(text: str) -> list[dict[str, object]]:
    """`linear:100 relu` as operations."""
    return [{"op": word.split(":")[0], **({"out": int(word.split(":")[1])} if ":" in word else {})} for word in text.split()]


def kept(job: Job) -> int:
    """Bytes that autograd keeps for the whole network."""
    assert job.model.operations is not None
    return predict(job).saved_activation_bytes_per_layer * len(job.model.operations.layers)


@pytest.mark.parametrize(
    ("operation", "want_shape", "want_weights"),
    [
        ({"op": "conv2d", "out": 16, "kernel": 3, "stride": 2, "padding": 1}, (16, 4, 4), 16 * 8 * 9 + 16),
        ({"op": "conv2d", "out": 16, "kernel": 3, "groups": 8, "bias": False}, (16, 6, 6), 16 * 9),
        ({"op": "conv2d", "out": 16, "kernel": 3, "dilation": 2}, (16, 4, 4), 16 * 8 * 9 + 16),
        ({"op": "conv_transpose2d", "out": 4, "kernel": 2, "stride": 2}, (4, 16, 16), 8 * 4 * 4 + 4),
        ({"op": "max_pool2d", "kernel": 2}, (8, 4, 4), 0),
        ({"op": "avg_pool2d", "kernel": 3, "stride": 1}, (8, 6, 6), 0),
        ({"op": "adaptive_avg_pool2d", "size": 2}, (8, 2, 2), 0),
        ({"op": "global_avg_pool"}, (8,), 0),
        ({"op": "upsample", "scale": 3}, (8, 24, 24), 0),
        ({"op": "pixel_shuffle"}, (2, 16, 16), 0),
        ({"op": "flatten"}, (512,), 0),
        ({"op": "reshape", "shape": [64, 8]}, (64, 8), 0),
        ({"op": "tokens"}, (64, 8), 0),
        ({"op": "batch_norm"}, (8, 8, 8), 16),
        ({"op": "group_norm", "groups": 4}, (8, 8, 8), 16),
        ({"op": "layer_norm"}, (8, 8, 8), 16),
        ({"op": "instance_norm"}, (8, 8, 8), 0),
        ({"op": "prelu"}, (8, 8, 8), 1),
        ({"op": "glu"}, (4, 8, 8), 0),
    ],
)
def test_shapes_and_weights_are_those_of_torch(operation: dict[str, object], want_shape: tuple[int, ...], want_weights: int) -> None:
    """The output and the parameters of one operation on 8 channels of 8 × 8 (torch/nn/modules)."""
    job = a_network([operation], [8, 8, 8])
    assert job.model.operations is not None
    (layer,) = network_of(job.model.operations).layers
    assert (layer.made.shape, layer.made.weight + layer.made.bias) == (want_shape, want_weights)


@pytest.mark.parametrize(
    ("op", "fields", "want_bytes_per_element"),
    [
        ("relu", {}, 4 + 4),
        ("gelu", {}, 4 + 4),
        ("tanh", {}, 4 + 4),
        ("relu", {"inplace": True}, 4),
        ("silu", {"inplace": True}, 4 + 4),
        ("dropout", {"p": 0.5}, 4 + 1),
        ("dropout", {"p": 0.0}, 4),
        ("identity", {}, 4),
    ],
)
def test_an_operation_keeps_what_its_gradient_reads(op: str, fields: dict[str, object], want_bytes_per_element: int) -> None:
    """Between two linear layers: the second one's input (4 bytes), and what the operation keeps beside it (derivatives.yaml).

    An activation that reads its output keeps that with a linear layer behind it, one that reads its input keeps the input as well:
    relu and tanh cost nothing beside the linear layer's input.
    """
    reads_output = op in ("relu", "tanh") and not fields
    want = 64 * 32 * (want_bytes_per_element - 4 * reads_output)
    network = [{"op": "linear", "out": 32}, {"op": op, **fields}, {"op": "linear", "out": 8}]
    assert kept(a_network(network, [16], batch=64)) == pytest.approx(want, abs=3)


def test_max_pooling_keeps_the_places_of_its_maxima_as_integers() -> None:
    """Eight bytes an output element beside the input (aten DilatedMaxPool2d)."""
    conv = {"op": "conv2d", "out": 4, "kernel": 1}
    job = a_network([conv, {"op": "max_pool2d", "kernel": 2}, {"op": "conv2d", "out": 2, "kernel": 1}], [3, 8, 8], batch=2)
    assert kept(job) == pytest.approx(2 * 4 * (64 * 4 + 16 * 8 + 16 * 4), abs=3)


def test_a_batch_norm_keeps_two_numbers_a_channel() -> None:
    """Its input, and mean and deviation of a channel over the whole batch, not of an example (aten Normalization.cuh)."""
    job = a_network([{"op": "conv2d", "out": 4, "kernel": 1}, {"op": "batch_norm"}], [3, 8, 8], batch=16)
    assert kept(job) == pytest.approx(16 * 4 * 64 * 4 + 2 * 4 * 4, abs=2)


def test_a_skip_connection_lives_until_it_is_read() -> None:
    """A named output stays beside what runs in between; a concatenation copies both."""
    first = {"op": "conv2d", "out": 8, "kernel": 3, "padding": 1, "name": "skip"}
    body: list[object] = [first, {"op": "max_pool2d", "kernel": 2}, {"op": "upsample"}]
    job = a_network([*body, {"op": "concat", "inputs": ["skip"]}, {"op": "conv2d", "out": 2, "kernel": 1}], [3, 16, 16])
    assert job.model.operations is not None
    network = network_of(job.model.operations)
    assert network.layers[3].made.shape == (16, 16, 16)
    assert network.layers[3].inputs == (3, 1)
    assert network.layers[3].dying == (1, 3)
    assert not predict(job).undecided


def test_a_residual_sum_keeps_nothing() -> None:
    """The gradient of a sum is handed on (derivatives.yaml: add)."""
    conv = {"op": "conv2d", "out": 3, "kernel": 3, "padding": 1}
    plain = a_network([conv, conv], [3, 8, 8])
    residual = a_network([conv | {"name": "x"}, conv, {"op": "add", "inputs": ["x"]}], [3, 8, 8])
    assert kept(residual) == pytest.approx(kept(plain), abs=3)


@pytest.mark.parametrize(
    ("layers", "want_path", "want_text"),
    [
        ([], "layers", "at least one"),
        ([{"op": "conv2"}], "layers[0].op", "did you mean conv2d"),
        ([{"op": "linear"}], "layers[0].out", "is missing"),
        ([{"op": "conv2d", "out": 8, "kernel": 30}], "layers[0].kernel", "leaves nothing"),
        ([{"op": "conv2d", "out": 8, "kernel": 3, "groups": 2}], "layers[0].groups", "does not divide"),
        ([{"op": "relu"}, {"op": "add", "inputs": ["x"]}], "layers[1].inputs", "no earlier output"),
        ([{"op": "relu"}, {"op": "add"}], "layers[1].inputs", "needs the name"),
        ([{"op": "conv1d", "out": 8, "kernel": 3}], "layers[0]", "needs channels and 1 sizes"),
        ([{"op": "dropout", "p": 1.5}], "layers[0].p", "outside 0 to 1"),
        ([{"op": "relu", "name": "a"}, {"op": "relu", "name": "a"}], "layers[1].name", "earlier output"),
        ([{"op": "gelu", "inplace": True}], "layers[0].inplace", "no in-place form"),
        ([{"op": "reshape", "shape": [7]}], "layers[0].shape", "does not hold"),
        ([{"op": "linear", "out": 1 << 41}], "layers[0].out", "absurd"),
    ],
)
def test_an_operation_that_cannot_be_is_named(layers: list[dict[str, object]], want_path: str, want_text: str) -> None:
    """The first wrong field by its path, with what to do; the service answers with it before anything is counted."""
    with pytest.raises(JobError) as caught:
        predict(a_network(layers, [3, 8, 8]))
    (error,) = caught.value.fields
    assert error.field == f"model.operations.{want_path}"
    assert want_text in error.description


def test_an_input_must_be_stated() -> None:
    """Without the shape of an example nothing follows."""
    with pytest.raises(NetworkError, match="input"):
        network_of(job_of({"model": {"operations": {"layers": [{"op": "relu"}]}}}).model.operations or pytest.fail("no operations"))


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"checkpointing": {"mode": "full"}}, "checkpointing.mode"),
        ({"parallelism": {"tensor": 2, "world_size": 2}}, "counted whole"),
        ({"lora": {"rank": 8}}, "adapters of a plain network"),
        ({"framework": {"compile": True, "name": "torch"}}, "compiled"),
        ({}, ""),
    ],
)
def test_what_a_plain_network_does_not_count_is_said(fields: dict[str, object], want: str) -> None:
    """Never silently wrong: the answer is UNDECIDED and names the field."""
    undecided = " ".join(predict(a_network(layers_of("linear:8 relu linear:4"), [16], **fields)).undecided)
    assert want in undecided
    assert bool(undecided) == bool(want)


def test_what_operations_state_is_not_open() -> None:
    """A rejection need not hold under checkpointing or a fused loss, which a plain loop has to be written for."""
    open_fields = {path for path, _ in favourable(job_of({"model": {"operations": {"input": [4], "layers": [{"op": "relu"}]}}}))}
    assert "precision.recipe" in open_fields
    assert not open_fields & {"checkpointing.mode", "loss.implementation", "attention.implementation"}


def test_autocast_keeps_halves_and_copies_of_weights() -> None:
    """Products run on 16-bit copies of input and weight, which autograd keeps; the weight stays in float32 (autocast_mode.h).

    The first layer's weight copy is not kept: its input asks for no gradient.
    """
    layers = layers_of("linear:64 relu linear:8")
    plain, amp = (kept(a_network(layers, [16], batch=512, precision={"recipe": recipe})) for recipe in ("fp32", "amp-bf16"))
    assert amp == pytest.approx(2 * (512 * 16 + 512 * 64 + 64 * 8), abs=3)
    assert plain == pytest.approx(4 * 512 * 64, abs=3)


@pytest.mark.parametrize("recipe", ["fp32", "bf16", "amp-bf16"])
@pytest.mark.parametrize("loss", ["cross_entropy", "mse", "none"])
def test_every_loss_and_format_is_answered(recipe: str, loss: str) -> None:
    """The ledger sums to the device's bytes, and weights are in the format of the recipe."""
    layers: list[object] = [
        {"op": "embedding", "size": 50, "out": 32},
        {"op": "position_embedding"},
        {"op": "layer_norm", "name": "x"},
        {"op": "attention", "heads": 4},
        {"op": "add", "inputs": ["x"]},
        {"op": "rms_norm"},
        {"op": "linear", "out": 50},
    ]
    answer = predict(a_network(layers, [12], loss=loss, precision={"recipe": recipe}))
    assert sum(line.bytes for line in answer.ledger) == answer.device_bytes
    weights = next(line.bytes for line in answer.ledger if line.category == "parameters")
    assert weights == answer.parameters * ITEMSIZE["bfloat16" if recipe == "bf16" else "float32"]


@given(batch=st.integers(1, 64), more=st.integers(1, 64), width=st.integers(1, 200))
def test_more_batch_never_needs_less(batch: int, more: int, width: int) -> None:
    """A law of every model."""

    def peak(size: int) -> Prediction:
        return predict(a_network(layers_of(f"linear:{width} batch_norm relu dropout linear:10"), [20], batch=size))

    assert peak(batch + more).live_bytes >= peak(batch).live_bytes


def test_data_parallel_adds_its_buckets() -> None:
    """DistributedDataParallel holds buckets as large as all gradients (torch/nn/parallel/distributed.py)."""
    layers = layers_of("linear:64 relu linear:8")
    alone = predict(a_network(layers, [16]))
    both = predict(a_network(layers, [16], parallelism={"world_size": 2, "sharding": "ddp"}))
    assert both.live_bytes - alone.live_bytes == 4 * alone.parameters


def test_networks_measured_on_a_gpu_are_met() -> None:
    """200 fully connected networks of GPUMemNet, trained with Adam in float32: reserved bytes and the context against the whole card.

    The context is 1,440 MiB there (the smallest networks' figure); nothing else is added.
    """
    errors = []
    for row in ROWS:
        job = a_network(layers_of(row["layers"]), [row["input"]], batch=row["batch"], optimizer={"name": "adam"}, gpu={"type": "a100-40gb"})
        answer = predict(job)
        assert not answer.undecided
        assert abs(answer.parameters - row["parameters"]) <= 10  # the source leaves PReLU's one weight out
        errors.append(abs(math.log((answer.reserved_bytes / MIB + CONTEXT_MIB) / row["peak_mib"])))
    assert statistics.median(errors) < 0.008
    assert statistics.quantiles(errors, n=10)[-1] < 0.016
    assert max(errors) < 0.04
