"""`peakgate predict`, `suggest`, `explain` and `read` on launch files and launch commands, each run as a person runs it."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.integration.cli import EXAMPLES, peakgate

UNNEEDED = (
    "peakgate.readers",
    "peakgate.agent",
    "peakgate.client.imports",
    "peakgate.client.torch",
    "sqlalchemy",
    "pydantic_settings",
    "urllib.request",
)

SPEC = """\
      model: {preset: llama-3.2-1b}
      batch: {micro_batch_size: 1, sequence_length: 2048}
      precision: {recipe: bf16}
      optimizer: {name: adamw}
      checkpointing: {mode: full}
      framework: {name: huggingface}
"""
MANIFEST = f"""\
apiVersion: batch/v1
kind: Job
metadata:
  name: sft
  annotations:
    peakgate.io/spec: |
{SPEC}spec:
  template:
    spec:
      nodeSelector: {{nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB}}
      containers:
        - name: train
          image: train
          command: [torchrun, --nproc-per-node, "2", train_of_nobody.py]
          resources: {{limits: {{nvidia.com/gpu: 2, memory: 100Gi}}}}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A manifest that says its job in its own words."""
    path = tmp_path / "job.yaml"
    path.write_text(MANIFEST)
    return path


def test_a_manifest_is_answered(manifest: Path) -> None:
    """Its card and its GPUs, with what it was read as, in text and in JSON."""
    done = peakgate("predict", manifest)
    assert done.status == 0, done.out + done.err
    assert "Read as stated: " in done.out
    answer = json.loads(peakgate("predict", manifest, "--output", "json").out)
    assert (answer["verdict"], answer["capacity"]["gpu"]) == ("ADMIT", "a100-40gb")
    assert answer["reading"]["sources"]["gpu.type"] == f"{manifest}:16 nvidia.com/gpu.product"
    assert answer["reading"]["format"] == "stated"
    assert peakgate("suggest", manifest).out.count("Read as stated") == 1
    assert "reading" in json.loads(peakgate("explain", manifest, "--output", "json").out)


def test_read_shows_the_document(manifest: Path, tmp_path: Path) -> None:
    """The text is a job document that means the same; JSON has the places beside it."""
    done = peakgate("read", manifest)
    assert done.status == 0
    assert f"# {manifest}:16 nvidia.com/gpu.product" in done.out
    (tmp_path / "written.yaml").write_text(done.out)
    read = json.loads(peakgate("read", manifest, "--output", "json").out)
    assert yaml.safe_load(done.out) == read["job"]
    assert set(read) == {"job", "sources", "warnings", "unread", "format"}
    again, first = (json.loads(peakgate("predict", path, "--output", "json").out) for path in (tmp_path / "written.yaml", manifest))
    assert again["peak"] == first["peak"]


def test_read_takes_documents_and_several(manifest: Path) -> None:
    """A line each, an error object in a bad one's place, and status 2 then."""
    done = peakgate("read", manifest, EXAMPLES / "textbook-1.3b.yaml", manifest.parent / "nowhere.yaml", "--output", "jsonl")
    assert done.status == 2
    first, second, third = done.objects
    assert (first["format"], second["format"]) == ("stated", "job document")
    assert second["sources"]["gpu.type"] == str(EXAMPLES / "textbook-1.3b.yaml")
    assert third["error"]["reason"] == "FILE_UNREADABLE"
    assert "nowhere.yaml" in done.err


@pytest.mark.parametrize("verb", ["predict", "read", "suggest", "explain"])
def test_a_command_that_nobody_knows_is_bad_input(verb: str) -> None:
    """The error says what was tried, and no word of it is taken for a file."""
    done = peakgate(verb, "--output", "json", "--", "torchrun", "--nproc-per-node", "8", "train_of_nobody.py", "--output", "x")
    assert done.status == 2
    error = json.loads(done.out)["error"]
    assert (error["reason"], "train_of_nobody.py is none of" in error["message"]) == ("LAUNCH_UNKNOWN", True)


def test_read_says_beside_an_error_what_it_could_not_open(tmp_path: Path) -> None:
    """That the model is missing is no surprise then."""
    job = tmp_path / "job.sh"
    job.write_text("tune run --nproc_per_node 4 full_finetune_distributed --config /elsewhere/own.yaml\n")
    done = peakgate("read", job)
    assert done.status == 2
    assert "model is missing" in done.err
    assert "/elsewhere/own.yaml does not exist" in done.err


def test_an_error_says_why_the_model_is_missing() -> None:
    """Sizes that only an archive holds."""
    words = ["python", "megatron_gpt_sft.py", "model.restore_from_path=/m/a.nemo", "model.micro_batch_size=1", "trainer.devices=8"]
    for verb in ("read", "predict"):
        done = peakgate(verb, "--", *words)
        assert done.status == 2
        assert "model is missing" in done.err + done.out
        assert "the model's sizes are inside the archive that is restored" in " ".join((done.err + done.out).split())


def test_files_may_stand_behind_two_hyphens() -> None:
    """For whoever guards names that begin like an option."""
    assert peakgate("predict", "--", EXAMPLES / "textbook-1.3b.yaml").status == 1


def test_what_the_service_refuses_names_its_line(manifest: Path) -> None:
    """A card that is in no catalogue: the field, and where it stands."""
    manifest.write_text(MANIFEST.replace("NVIDIA-A100-SXM4-40GB", "Quadro-RTX-8000"))
    for verb in ("predict", "suggest", "explain"):
        done = peakgate(verb, manifest, "--output", "jsonl")
        (error,) = (line["error"] for line in done.objects)
        (field,) = error["fields"]
        assert (done.status, field["field"]) == (2, "gpu.type")
        assert field["description"].endswith(f"({manifest}:16 nvidia.com/gpu.product)")
    assert peakgate("predict", manifest, "--gpu", "a100-40gb").status == 0


def test_what_no_field_can_say_is_undecided(tmp_path: Path) -> None:
    """Also of a job that would fit."""
    path = tmp_path / "job.yaml"
    path.write_text(f"{(EXAMPLES / 'textbook-1.3b-flash.yaml').read_text()}\nunread: [galore (train.yaml:3 use_galore)]\n")
    done = peakgate("predict", path, "--output", "json")
    assert done.status == 3
    assert "galore (train.yaml:3 use_galore)" in json.loads(done.out)["reason"]


COMMAND = "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B --block_size 4096 --bf16 True --do_train"


def test_a_launch_command_is_answered() -> None:
    """A real command: figures, and what the flags do not say among the assumptions."""
    more = "--per_device_train_batch_size 1 --gradient_checkpointing True --fsdp full_shard --optim adamw_torch"
    done = peakgate("predict", "--gpu", "h100-80gb", "--output", "json", "--", *COMMAND.split(), *more.split())
    answer = json.loads(done.out)
    assert (done.status, answer["verdict"]) == (0, "ADMIT"), answer["reason"]
    assert answer["reading"]["sources"]["batch.sequence_length"] == "--block_size"
    assert any(each.startswith("dropout.attention") for each in answer["assumptions"])


def test_a_script_of_several_commands_is_answered(tmp_path: Path) -> None:
    """The one that trains, with the line of each flag and what a line of the submitter's own adds."""
    script = tmp_path / "job.sbatch"
    lines = ["#!/bin/bash", "#SBATCH --gres=gpu:h100:8", "#PEAKGATE checkpointing.mode=full", "pip install -e .", f"srun {COMMAND}"]
    script.write_text("\n".join(lines) + "\n")
    read = json.loads(peakgate("read", script, "--output", "json").out)
    assert read["format"] == "huggingface"
    assert read["job"]["checkpointing"]["mode"] == "full"
    assert read["sources"]["model.preset"] == f"{script}:5 --model_name_or_path"
    answer = json.loads(peakgate("predict", script, "--output", "json").out)
    assert answer["capacity"]["gpu"] == "h100-80gb"


def test_a_document_loads_what_it_needs() -> None:
    """The command is called once a job: no reader of launches, no agent, no database and nothing of imports is loaded for it."""
    program = (
        "import atexit, sys; "
        f"atexit.register(lambda: print(sorted(name for name in sys.modules if name.startswith({UNNEEDED!r})), file=sys.stderr)); "
        f"sys.argv = ['peakgate', 'predict', {str(EXAMPLES / 'llama-3.2-1b-lora.yaml')!r}]; from peakgate.client.main import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


def test_nothing_of_a_launch_is_run(tmp_path: Path) -> None:
    """A program and a script that would leave a file behind leave none."""
    mark = tmp_path / "mark"
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/bash\ntouch {mark}\nX=$(touch {mark})\npython train.py $X\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "train.py").write_text(f"open({str(mark)!r}, 'w')\n")
    assert peakgate("read", script, folder=tmp_path).status == 2
    assert peakgate("read", "--", script, folder=tmp_path).status == 2
    assert peakgate("read", "--", "python", "train.py", folder=tmp_path).status == 2
    assert not mark.exists()


LAUNCHES = {
    "job.sbatch": """\
#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=8
MODEL=(--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8
  --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights --position-embedding-type rope
  --attention-dropout 0.0 --hidden-dropout 0.0 --vocab-size 128256 --max-position-embeddings 8192)
srun torchrun --nproc_per_node 8 pretrain_gpt.py "${MODEL[@]}" --seq-length 8192 --micro-batch-size 2 --global-batch-size 128 \\
  --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --bf16
""",
    "axolotl.yml": """\
base_model: NousResearch/Meta-Llama-3-8B
datasets: [{path: mhenrichsen/alpaca_2k_test, type: alpaca}]
sequence_len: 8192
sample_packing: true
pad_to_sequence_len: true
flash_attention: true
micro_batch_size: 2
bf16: auto
optimizer: paged_adamw_8bit
""",
    "pretrain.yaml": """\
model_name_or_path: Qwen/Qwen2.5-7B
stage: pt
finetuning_type: full
dataset: c4_demo
cutoff_len: 4096
per_device_train_batch_size: 2
bf16: true
""",
    "tune.sh": """\
#!/bin/bash
tune run full_finetune_single_device --config llama3_1/8B_full_single_device dataset.packed=True tokenizer.max_seq_len=4096
""",
    "clm.sh": """\
#!/bin/bash
torchrun --nproc_per_node 4 run_clm.py --model_name_or_path Qwen/Qwen2.5-1.5B --block_size 2048 --per_device_train_batch_size 4 \\
  --bf16 --torch_dtype bfloat16 --output_dir out
""",
}


@pytest.mark.parametrize("card", ["t4-16gb", "h100-80gb"])
def test_a_launch_that_leaves_things_to_its_framework_is_decided(card: str, tmp_path: Path) -> None:
    """What the framework's own program does without a word is known: none of these is UNDECIDED, however small the card."""
    paths = [tmp_path / name for name in LAUNCHES]
    for path in paths:
        path.write_text(LAUNCHES[path.name])
    done = peakgate("predict", *paths, "--gpu", card, "--output", "jsonl")
    assert len(done.objects) == len(LAUNCHES), done.err
    for path, answer in zip(paths, done.objects, strict=True):
        assert answer["verdict"] in ("ADMIT", "REJECT"), (path.name, answer)
