"""Launchers: what they say, and the program that is left."""

from __future__ import annotations

import pytest
from tests.unit.readers.shells import fields, launches, started, texts

from peakgate.memory.catalog.gpus import find_gpu
from peakgate.readers.arguments import Word
from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.readers.launchers.peel import launches_of, peeled
from peakgate.readers.place import FLAG, MANIFEST, VARIABLE, Place, Stated
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.shell.script import words_of

FILES = {
    "acc.yaml": "distributed_type: FSDP\nnum_processes: 16\nnum_machines: 2\n",
    "hosts": "a slots=8\nb slots=8\n# c slots=8\n",
}


def world(count: int, node: int | None = None, total: int | None = None) -> dict[str, object]:
    """The fields of so many processes, with GPUs of a node and of all."""
    return {"gpu.count": total or count, "node.gpus": node or count, "parallelism.world_size": count}


@pytest.mark.parametrize(
    ("command", "want_words", "want_fields"),
    [
        ("python train.py --x 1", "train.py --x 1", {}),
        ("python3.11 -u -W ignore train.py", "train.py", {}),
        ("python -m pkg.train --x", "pkg.train --x", {}),
        ("/opt/conda/bin/python -um pkg.train", "pkg.train", {}),
        ("python -mpkg.train --x", "pkg.train --x", {}),
        ("python -Xdev -X utf8 --check-hash-based-pycs never train.py", "train.py", {}),
        ("torchrun --nproc_per_node 8 train.py --x", "train.py --x", world(8)),
        ("torchrun --nproc-per-node=8 --nnodes=2 --node_rank 0 --rdzv_backend c10d train.py", "train.py", world(16, 8)),
        ("torchrun --standalone --nproc-per-node 4 -m pkg.train a", "pkg.train a", world(4)),
        ("torchrun -t 3 -r 0 --nnodes 1:1 --nproc_per_node 2 train.py", "train.py", world(2)),
        ("torchrun train.py", "train.py", world(1)),
        ("torchrun --nproc_per_node gpu train.py", "train.py", {}),
        ("CUDA_VISIBLE_DEVICES=0,1,2 torchrun --nproc_per_node auto train.py", "train.py", world(3)),
        ("PET_NPROC_PER_NODE=4 torchrun train.py", "train.py", world(4)),
        ("python -m torch.distributed.launch --use_env --nproc_per_node=4 train.py", "train.py", world(4)),
        ("python -m torch.distributed.run --nproc_per_node=4 train.py", "train.py", world(4)),
        ("accelerate launch --num_processes 8 train.py --x", "train.py --x", world(8)),
        ("accelerate launch --config_file acc.yaml train.py", "train.py", world(16, 8)),
        ("accelerate launch --config-file=acc.yaml --num-processes 8 --num_machines 1 train.py", "train.py", world(8)),
        ("accelerate launch --multi_gpu --mixed_precision bf16 -m pkg.train", "pkg.train", {}),
        ("accelerate launch --gpu_ids 0,1 --num_processes 2 train.py", "train.py", world(2)),
        ("python -m accelerate.commands.launch --num_processes 2 train.py", "train.py", world(2)),
        ("deepspeed --num_gpus 4 train.py --deepspeed ds.json", "train.py --deepspeed ds.json", world(4)),
        ("deepspeed --num_gpus=8 --num_nodes=2 --hostfile hosts train.py", "train.py", world(16, 8)),
        ("deepspeed --hostfile hosts --master_port 1 train.py", "train.py", world(16, 8)),
        ("deepspeed --include localhost:0,2 train.py", "train.py", world(2)),
        ("deepspeed --include=a:0,1@b:0,1 --hostfile hosts train.py", "train.py", world(4, 2)),
        ("deepspeed --module pkg.train", "pkg.train", {}),
        (
            "tune run --nproc_per_node 8 full_finetune_distributed --config l/8B a.b=1",
            "full_finetune_distributed --config l/8B a.b=1",
            world(8),
        ),
        ("tune run lora_finetune_single_device --config c.yaml", "lora_finetune_single_device --config c.yaml", world(1)),
        ("mpirun -np 16 -N 8 --allow-run-as-root --mca btl ^openib -x A=1 -bind-to none python train.py", "train.py", world(16, 8)),
        ("mpirun -n 16 -H a:8,b:8 python train.py", "train.py", world(16, 8)),
        ("mpiexec -np 4 --map-by ppr:2:node python train.py", "train.py", world(4, 2)),
        ("horovodrun -np 8 -H localhost:8 python train.py", "train.py", world(8)),
        ("composer -n 8 train.py c.yaml", "train.py c.yaml", world(8)),
        ("colossalai run --nproc_per_node 8 --host a train.py", "train.py", world(8)),
        ("srun -N 2 --ntasks-per-node=8 --gpus-per-node=8 python train.py", "train.py", world(16, 8)),
        ("srun -N2 -n16 --gres=gpu:8 --container-image x.sqsh --no-container-mount-home python train.py", "train.py", world(16, 8)),
        ("srun -n1 --gpus=1 python train.py", "train.py", world(1)),
        ("srun -N 2 --gpus-per-node 8 --mpi=pmix -l torchrun --nnodes 2 --nproc_per_node 8 train.py", "train.py", world(16, 8)),
        ("uv run train.py", "train.py", {}),
        ("uv run --with x python train.py", "train.py", {}),
        ("poetry run python -m pkg", "pkg", {}),
        ("conda run -n env --no-capture-output python train.py", "train.py", {}),
        ("env A=1 B=2 python train.py", "train.py", {}),
        ("nohup time numactl -N 0 -m 0 python train.py", "train.py", {}),
        ("numactl --cpunodebind=0 python train.py", "train.py", {}),
        ("nsys profile -o out -t cuda,nvtx --capture-range=cudaProfilerApi torchrun --nproc_per_node 2 train.py", "train.py", world(2)),
        ("timeout -k 5 8h python train.py", "train.py", {}),
        ("apptainer exec --nv -B /data:/data image.sif python train.py", "train.py", {}),
        ("singularity run --nv image.sif torchrun --nproc_per_node 2 train.py", "train.py", world(2)),
        ("docker run --rm -it --gpus all -v /a:/a -e A=1 --ipc=host img:1 python train.py", "train.py", {}),
        ("enroot start --mount /a:/b img bash -c 'python train.py --x'", "train.py --x", {}),
        ("ray job submit --address=http://h:8265 --runtime-env-json='{}' -- python -m pkg.train --x", "pkg.train --x", {}),
        ("bash -lc 'cd x && torchrun --nproc_per_node 2 train.py'", "train.py", world(2)),
        ("axolotl train config.yml --x", "axolotl train config.yml --x", {}),
        ("llamafactory-cli train c.yaml", "llamafactory-cli train c.yaml", {}),
        ("FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train c.yaml", "llamafactory-cli train c.yaml", world(16, 8)),
        ("NPROC_PER_NODE=4 swift sft --model m", "swift sft --model m", world(4)),
        ("CUDA_VISIBLE_DEVICES=0,1 swift sft --model m", "swift sft --model m", {"gpu.count": 2, "node.gpus": 2}),
        ("litgpt finetune_lora m --devices 4", "litgpt finetune_lora m --devices 4", {}),
        ("accelerate launch -m axolotl.cli.train c.yml", "axolotl.cli.train c.yml", {}),
    ],
)  # fmt: skip
def test_a_launcher_is_peeled_off(command: str, want_words: str, want_fields: dict[str, object]) -> None:
    """The program with its words, and what the launchers say of GPUs."""
    launch = started(command, FILES)
    assert " ".join(texts(launch)) == want_words
    assert fields(launch) == want_fields
    assert launch.around.warnings == []


@pytest.mark.parametrize(
    "command",
    ["conda activate x", "docker pull img", "tune download m", "accelerate config", "python -c 'print(1)'", "python -m pip install x",
     "pip install torch", "uv pip install x", "ray start --head", "cd x", "source a.sh", "echo python train.py", ""],
)  # fmt: skip
def test_what_starts_nothing(command: str) -> None:
    """Commands around a training are no launches."""
    assert launches(f"{command}\n") == []


def test_flags_of_a_launcher_are_kept() -> None:
    """A reader of the program's format interprets those of Accelerate."""
    launch = started("srun -n1 accelerate launch --config_file acc.yaml --use_fsdp --fsdp_offload_params true train.py", FILES)
    assert launch.launchers == ("srun", "accelerate")
    flags = launch.launcher_flags["accelerate"]
    assert {name: stated.value for name, stated in flags.flags.leaves.items()} == {
        "config_file": "acc.yaml", "use_fsdp": True, "fsdp_offload_params": "true"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "command", "want"),
    [
        (
            "--nodes=2\n--gres=gpu:a100_80gb:4",
            "torchrun --nnodes $SLURM_NNODES --nproc_per_node 4",
            world(8, 4) | {"gpu.type": "a100-80gb"},
        ),
        ("-N 2\n-G 16", "torchrun --nnodes $SLURM_JOB_NUM_NODES --nproc_per_node $SLURM_GPUS_ON_NODE", world(16, 8)),
        ("-N2\n--gpus-per-task=1\n--ntasks-per-node=4", "srun python", world(8, 4)),
        ("--ntasks=8\n--gpus-per-task 1\n--nodes 1", "srun python", world(8)),
        ("--ntasks=8\n--gpus-per-task=h100:1\n--nodes 1", "srun python", world(8) | {"gpu.type": "h100-80gb"}),
        ("--ntasks=8\n--tres-per-task=gres/gpu:h200=1\n--nodes 1", "srun python", world(8) | {"gpu.type": "h200-141gb"}),
        ("--ntasks 16\n--ntasks-per-node 8\n--gpus-per-node 8", "srun python", world(16, 8)),
        ("--gres=gpu:8,nvme:1\n--mem=1T", "deepspeed", world(8) | {"node.host_memory_bytes": 1 << 40}),
        ("--gpus-per-node=4\n--mem-per-gpu=100G", "accelerate launch", world(4) | {"node.host_memory_bytes": 400 << 30}),
        ("--gres=gpu:1\n--mem 64000", "python", {"gpu.count": 1, "node.gpus": 1, "node.host_memory_bytes": 64000 << 20}),
        (
            "--gres=gpu:4\n--cpus-per-task=8\n--ntasks-per-node=4\n--mem-per-cpu=4G",
            "srun python",
            world(4) | {"node.host_memory_bytes": 128 << 30},
        ),
        ("--gres=gpu:8\n--constraint=h200", "torchrun --nproc_per_node 8", world(8) | {"gpu.type": "h200-141gb"}),
        ("--gres=gpu:8\n-C a100&80gb", "torchrun --nproc_per_node 8", world(8) | {"gpu.type": "a100-80gb"}),
        ("--gres=gpu:a100:8\n-C a100_80", "torchrun --nproc_per_node 8", world(8) | {"gpu.type": "a100-80gb"}),
        ("--gres=gpu:4\n--ntasks=1", "python", {"gpu.count": 4, "node.gpus": 4}),
        (
            "--gres=gpu:4\n-N 2",
            "accelerate launch --num_machines $SLURM_NNODES --num_processes $((SLURM_NNODES * SLURM_GPUS_ON_NODE))",
            world(8, 4),
        ),
        (
            "--gres=gpu:4\n-N 2",
            "accelerate launch --num_machines 2 --num_processes $(($SLURM_NNODES*$(nvidia-smi -L | wc -l)))",
            world(8, 4),
        ),
    ],
)  # fmt: skip
def test_slurm_lines(lines: str, command: str, want: dict[str, object]) -> None:
    """Short and long forms, with = or a blank; Slurm's variables follow."""
    script = "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in lines.splitlines()) + f"\n{command} train.py\n"
    (launch,) = launches(script, name="job.sbatch")
    assert fields(launch) == want
    assert launch.around.warnings == []


def test_a_launch_on_a_part_of_its_allocation_is_judged_on_that_part() -> None:
    """Both places are named."""
    (launch,) = launches("#!/bin/bash\n#SBATCH --gres=gpu:8\n\ntorchrun --nproc_per_node 2 train.py\n", name="job.sbatch")
    assert fields(launch) == world(2, 8)
    (warning,) = launch.around.warnings
    assert warning.startswith(
        "gpu.count: 8 are asked for (job.sbatch:2 --gres), and 2 processes use one each (job.sbatch:4 --nproc_per_node)"
    )


@pytest.mark.parametrize("lines", ["#SBATCH --gres=gpu:8\n#SBATCH -C a100\n", "#SBATCH --gres=gpu:a100:8\n#SBATCH -C a100\n"])
def test_a_card_of_two_sizes_is_a_warning(lines: str) -> None:
    """Told once, whether the request or the constraint names it."""
    (launch,) = launches(f"#!/bin/bash\n{lines}\ntorchrun --nproc_per_node 8 train.py\n", name="job.sbatch")
    (warning,) = launch.around.warnings
    assert "may be a100-40gb or a100-80gb" in warning


def test_options_of_sbatch_win_over_its_lines() -> None:
    """As in Slurm."""
    job = "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\ntorchrun --nnodes $SLURM_NNODES --nproc_per_node 8 t.py $1\n"
    launch = started("sbatch --nodes=4 job.sbatch x", {"job.sbatch": job})
    assert texts(launch) == ["t.py", "x"]
    assert fields(launch) == world(32, 8)
    assert launch.launchers == ("sbatch", "torchrun")
    assert fields(started("sbatch -N1 --gres=gpu:2 --wrap='torchrun --nproc_per_node 2 t.py'")) == world(2)


def test_a_script_that_sbatch_gets_as_its_input() -> None:
    """Its lines are its own."""
    script = (
        "for n in 2 4; do\nsbatch <<EOF\n#!/bin/bash\n"
        "#SBATCH -N $n\n#SBATCH --gpus-per-node=8\ntorchrun --nnodes $n --nproc_per_node 8 t.py\nEOF\ndone\n"
    )
    (launch,) = launches(script)
    assert fields(launch) == world(16, 8)
    assert launch.around.warnings == []


def test_lines_behind_the_first_command_are_not_read() -> None:
    """Slurm does not read them, and says nothing."""
    (launch,) = launches("#SBATCH --gpus=1\nset -e\n#SBATCH --gpus=8\npython t.py\n")
    assert fields(launch)["gpu.count"] == 1
    assert launch.around.warnings == ["run.sh:3: #SBATCH --gpus=8 stands behind the first command, where Slurm does not read it"]


def test_more_processes_than_gpus_contradict() -> None:
    """Both places are named, and the nearer one is taken."""
    (launch,) = launches("#SBATCH --gres=gpu:4\ntorchrun --nproc_per_node=8 t.py\n")
    assert fields(launch) == world(8)
    assert launch.around.warnings == ["gpu.count: 4 (run.sh:1 --gres) and 8 (run.sh:2 --nproc_per_node) contradict; the last is taken"]
    assert started("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 4 t.py").around.warnings == [
        "gpu.count: 2 (CUDA_VISIBLE_DEVICES) and 4 (--nproc_per_node) contradict; the last is taken"
    ]


def test_other_nodes_than_asked_for_contradict() -> None:
    """A torchrun that knows of one node only uses one."""
    (launch,) = launches("#SBATCH -N 2\n#SBATCH --gpus-per-node=8\nsrun torchrun --nnodes=4 --nproc_per_node=8 t.py\n")
    assert "nodes: 2 (run.sh:1 -N) and 4 (run.sh:3 --nnodes) contradict; the last is taken" in launch.around.warnings


def test_what_only_a_run_knows_is_told() -> None:
    """A number of processes that nobody says is no number."""
    launch = started("torchrun --nproc_per_node $NGPU t.py")
    assert fields(launch) == {}
    assert launch.around.warnings == ["parallelism.world_size: '$NGPU' processes a node (--nproc_per_node) are not known here"]
    ranged = started("torchrun --nnodes 2:4 --nproc_per_node 8 t.py")
    assert ranged.around.warnings == ["2:4 nodes (--nnodes): the least is taken"]
    assert ranged.may_not_run


@pytest.mark.parametrize(
    ("variable", "want"),
    [
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", True),
        ("PYTORCH_ALLOC_CONF=max_split_size_mb:128,expandable_segments:False", False),
        ("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", None),
    ],
)
def test_the_allocator(variable: str, want: bool | None) -> None:
    """Expandable segments, by the old and the new name of the variable."""
    assert fields(started(f"{variable} python t.py")).get("framework.expandable_segments") == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("a100", ["a100-40gb", "a100-80gb"]), ("h100", ["h100-80gb"]), ("a100_80gb", ["a100-80gb"]), ("A100-SXM4-40GB", ["a100-40gb"]),
        ("nvidia_h100_80gb_hbm3", ["h100-80gb"]), ("NVIDIA-A100-SXM4-80GB", ["a100-80gb"]), ("h100_nvl", ["h100-94gb"]),
        ("nvidia_a100_3g.20gb", ["a100-40gb/3g.20gb"]), ("a100_3g.40gb", ["a100-80gb/3g.40gb"]), ("a100_1g.10gb", ["a100-80gb/1g.10gb"]),
        ("v100", ["v100-16gb", "v100-32gb"]), ("v100-32g", ["v100-32gb"]), ("tesla_v100-sxm2-16gb", ["v100-16gb"]), ("l40s", ["l40s-48gb"]),
        ("l40", ["l40-48gb"]), ("rtx_3090", ["rtx-3090-24gb"]), ("rtx3090", ["rtx-3090-24gb"]),
        ("geforce_rtx_2080_ti", ["rtx-2080ti-11gb"]),
        ("rtx_a6000", ["a6000-48gb"]), ("a6000", ["a6000-48gb"]), ("a40", ["a40-48gb"]), ("a10g", ["a10g-24gb"]), ("h200", ["h200-141gb"]),
        ("gh200", ["gh200-96gb"]), ("b200", ["b200"]), ("nvidia_gb200", ["gb200"]), ("tesla_t4", ["t4-16gb"]), ("gpu", []), ("quadro", []),
        ("mi300x", []), ("a1000", []), ("gpu80", []), ("rtx_6000_ada", ["rtx-6000-ada-48gb"]), ("h100-96", ["h100-96gb"]),
        ("nvidia_a100-pcie-40gb", ["a100-40gb"]), ("a100-80", ["a100-80gb"]), ("h100_sxm5_80gb", ["h100-80gb"]),
        ("a100-sxm-80gb", ["a100-80gb"]),
    ],
)  # fmt: skip
def test_names_of_gpus(name: str, want: list[str]) -> None:
    """Slurm's types, NVIDIA's product names, MIG slices; several where it may be several, and all of them in the catalogue."""
    assert list(gpus_named(name)) == want
    for each in want:
        assert find_gpu(each).name == each


def test_a_name_that_may_be_several_is_told() -> None:
    """And no type is stated."""
    (launch,) = launches("#SBATCH --gres=gpu:a100:1\npython t.py\n")
    assert "gpu.type" not in fields(launch)
    assert launch.around.warnings == ["gpu.type: a100 (run.sh:1 --gres) may be a100-40gb or a100-80gb; state gpu.type to choose"]


def test_a_launch_of_a_manifest() -> None:
    """What is around it already counts; a shell in it is read."""
    around = Reading()
    place = Place(kind=MANIFEST, key="spec", file="job.yaml")
    around.state("node.gpus", 8, place)
    around.state("gpu.count", 16, place)
    words = [Word(text, Place(kind=FLAG)) for text in ("bash", "-c", "pip install x; torchrun --nnodes $N --nproc_per_node gpu t.py")]
    environment = Settings({"N": Stated("2", Place(kind=VARIABLE, key="N"))})
    (launch,) = launches_of(Launch(words=words, around=around, environment=environment))
    assert texts(launch) == ["t.py"]
    assert fields(launch) == world(16, 8)
    assert launch.around.warnings == []
    assert peeled(Launch(words=words, around=around)).program == "t.py"


def test_a_launch_of_nothing_stays() -> None:
    """`peeled` always gives a launch."""
    assert peeled(Launch(words=words_of("cd x"), files=GivenFiles())).program == "cd"
    assert peeled(Launch()).words == ()
