"""Parameters counted in the headers of safetensors files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.unit.client.service import an_answer

from peakgate.client.checkpoint import INDEX, LARGEST_HEADER_BYTES, Counted, count_of, warn
from peakgate.client.errors import InputError
from peakgate.client.source import Source
from peakgate.client.sources import read_source
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

Tensors = dict[str, tuple[str, list[int]]]

TINY: Tensors = {"embed.weight": ("BF16", [100, 64]), "lm_head.weight": ("BF16", [100, 64]), "layers.0.weight": ("F32", [64, 64])}
ELEMENTS = 2 * 100 * 64 + 64 * 64
CONFIG = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}


def header(tensors: Tensors) -> bytes:
    """The beginning of a file with these tensors, as the format's description has it; no weights follow."""
    content = {name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]} for name, (dtype, shape) in tensors.items()}
    text = json.dumps({"__metadata__": {"format": "pt"}, **content}).encode()
    return len(text).to_bytes(8, "little") + text


def write(folder: Path, tensors: Tensors, name: str = "model.safetensors") -> None:
    """One file of a checkpoint."""
    (folder / name).write_bytes(header(tensors))


def answered(parameters: int, trainable: int = 0) -> PredictResponse:
    """An answer about a model of this size."""
    answer = an_answer()
    answer.model.parameters, answer.model.trainable_parameters = parameters, trainable
    del answer.warnings[:]
    return answer


def test_weights_are_counted(tmp_path: Path) -> None:
    """Elements of every tensor, and those of the head, which may be a second copy of the table of words."""
    write(tmp_path, TINY)
    assert count_of(tmp_path) == Counted(parameters=ELEMENTS, head=6400)


def test_several_files_are_one_checkpoint(tmp_path: Path) -> None:
    """The index names them; a file that it does not name, such as an adapter's, is none of them."""
    write(tmp_path, TINY, "model-00001-of-00002.safetensors")
    write(tmp_path, {"layers.1.weight": ("BF16", [10])}, "model-00002-of-00002.safetensors")
    write(tmp_path, {"other": ("BF16", [99])}, "adapter_model.safetensors")
    names = {"embed.weight": "model-00001-of-00002.safetensors", "layers.1.weight": "model-00002-of-00002.safetensors"}
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": names}))
    assert count_of(tmp_path) == Counted(parameters=ELEMENTS + 10, head=6400)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert count_of(tmp_path) is None


def test_stored_masks_are_no_weights(tmp_path: Path) -> None:
    """GPT-2's files hold a triangle of 1024 × 1024 in each layer, GPT-NeoX's one of bytes."""
    write(tmp_path, TINY | {"h.0.attn.bias": ("F32", [1, 1, 1024, 1024]), "layers.0.attention.bias": ("U8", [1, 1, 2048, 2048])})
    assert count_of(tmp_path) == Counted(parameters=ELEMENTS, head=6400)


def test_packed_weights_are_not_counted(tmp_path: Path) -> None:
    """Of a quantised checkpoint a byte is no parameter."""
    write(tmp_path, TINY | {"layers.0.qweight": ("I32", [512, 64])})
    assert count_of(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x05",
        (LARGEST_HEADER_BYTES + 1).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"{x",
        (9).to_bytes(8, "little") + b'{"a": 1 }',
        (17).to_bytes(8, "little") + b'{"a":{"shape":1}}',
        (20).to_bytes(8, "little") + b'{"a":{"shape":[-1]}}',
        (40_000).to_bytes(8, "little") + b"[" * 40_000,
    ],
)
def test_a_broken_file_gives_no_count(tmp_path: Path, content: bytes) -> None:
    """Too short, too long a header, no JSON, no shapes, nested without end: nothing is counted and nothing breaks."""
    (tmp_path / "model.safetensors").write_bytes(content)
    assert count_of(tmp_path) is None


def test_a_folder_without_weights_gives_no_count(tmp_path: Path) -> None:
    """Nor does one that is not there, or an index that points elsewhere."""
    assert count_of(tmp_path) is None
    assert count_of(tmp_path / "away") is None
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "../model.safetensors"}}))
    assert count_of(tmp_path) is None


@pytest.mark.parametrize(
    ("parameters", "want"),
    [(1_000_000, True), (1_009_999, True), (1_010_001, False), (900_000, True), (890_000, False), (2_000_000, False)],
)
def test_a_count_agrees_with_and_without_a_head(parameters: int, want: bool) -> None:
    """Within a hundredth of all weights, or of all but a head that is tied."""
    assert Counted(parameters=1_000_000, head=100_000).agrees(parameters) == want


def test_another_model_is_a_warning() -> None:
    """It names both counts; an adapter's weights are in no checkpoint."""
    counted, job, tuned = Counted(parameters=1_000_000), TrainingJob(), TrainingJob()
    tuned.lora.rank = 8
    same, other, adapted = answered(1_000_000), answered(2_000_000), answered(1_100_000, trainable=100_000)
    for answer, asked in ((same, job), (other, job), (adapted, tuned)):
        warn(answer, asked, counted)
    assert (list(same.warnings), list(adapted.warnings)) == ([], [])
    assert "describes 2,000,000 parameters" in other.warnings[0]
    assert "hold 1,000,000" in other.warnings[0]


def source_of(tmp_path: Path, hf_config: str) -> Source:
    """The job of a document beside a checkpoint's folder."""
    path = tmp_path / "job.json"
    path.write_text(json.dumps({"model": {"hf_config": hf_config}}))
    return read_source([str(path)], io.BytesIO())


@pytest.mark.parametrize("named", ["checkpoint", "checkpoint/config.json"])
def test_a_job_with_a_checkpoint_is_checked(tmp_path: Path, named: str) -> None:
    """The config is read as ever, and the answer is held against the files beside it."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    write(folder, TINY)
    source = source_of(tmp_path, named)
    assert source.required().model.hf_config["hidden_size"] == 64
    assert list(source.checked(answered(ELEMENTS)).warnings) == []
    assert len(source.checked(answered(2 * ELEMENTS)).warnings) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("python", "run_clm.py", "--per_device_train_batch_size", "1", "--output_dir", "out"),
        ("llamafactory-cli", "train", "--stage", "sft", "--per_device_train_batch_size", "1", "--output_dir", "out"),
    ],
    ids=["a trainer", "a fine-tuner"],
)
def test_a_launch_of_a_local_checkpoint_is_checked(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Where a folder is named as the model; a name of the hub has no files here."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write(tmp_path, TINY)
    source = read_source([], io.BytesIO(), (*words, "--model_name_or_path", str(tmp_path)))
    assert source.counted == Counted(parameters=ELEMENTS, head=6400)
    assert len(source.checked(answered(2 * ELEMENTS)).warnings) == 1
    assert read_source([], io.BytesIO(), (*words, "--model_name_or_path", "gpt2")).counted is None


def test_a_checkpoint_beside_a_script_is_found(tmp_path: Path) -> None:
    """A path in a script may begin at the script."""
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    write(folder, TINY)
    script = tmp_path / "job.sh"
    script.write_text("python run_clm.py --model_name_or_path base --per_device_train_batch_size 1 --output_dir out\n")
    assert read_source([str(script)], io.BytesIO()).counted == Counted(parameters=ELEMENTS, head=6400)


def test_weights_without_a_config_give_their_number(tmp_path: Path) -> None:
    """It is all that can be known of the model; a folder with neither is refused as before."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    with pytest.raises(InputError, match=r"config\.json"):
        source_of(tmp_path, "checkpoint").required()
    write(folder, TINY)
    assert source_of(tmp_path, "checkpoint").required().model.parameters == ELEMENTS
