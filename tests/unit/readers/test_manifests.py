"""Kubernetes manifests of every kind: the command, how many GPUs, which card, what the submitter adds."""

from __future__ import annotations

import json
import re

import pytest
from tests.unit.readers.manifest import TRAIN, a_job, around, launch_of, launches

from peakgate.readers.files import FileError, GivenFiles
from peakgate.readers.manifests.read import is_manifest
from peakgate.readers.read import MOST_LAUNCHES, UnreadableError, read_file, read_manifest
from peakgate.readers.reading import Reading

RESOURCES = "resources: {limits: {nvidia.com/gpu: 8}}"


def test_an_object_of_kubernetes_is_a_manifest() -> None:
    """By apiVersion and kind; a config file has neither."""
    assert is_manifest(a_job())
    assert is_manifest('{"kind": "Pod", "apiVersion": "v1"}')
    assert not is_manifest("kind: sft\n")
    assert not is_manifest("# apiVersion: of a comment\nkind: sft\n")


def test_a_job_is_one_pod() -> None:
    """Its words, its GPUs, and lines of the manifest as places."""
    launch = launch_of(a_job())
    assert [word.text for word in launch.words] == ["train.py", "--lr", "1"]
    stated = launch.around.fields
    assert {path: each.value for path, each in stated.items()} == {"gpu.count": 8, "node.gpus": 8}
    assert str(stated["gpu.count"].place) == "job.yaml:15 nvidia.com/gpu"


def test_an_indexed_job_trains_on_all_its_pods() -> None:
    """parallelism × GPUs, but no more pods than completions; without an index each pod is a run of its own."""
    assert around(a_job(job="parallelism: 4\n  completionMode: Indexed\n  completions: 4"))["gpu.count"] == 32
    assert around(a_job(job="parallelism: 4\n  completionMode: Indexed\n  completions: 2"))["gpu.count"] == 16
    alone = launch_of(a_job(job="parallelism: 4"))
    assert alone.around.get("gpu.count") == 8
    assert "runs of their own" in alone.around.warnings[0]


def test_a_shell_form_is_a_script() -> None:
    """Of several lines, with the places of the manifest."""
    command = """command: [/bin/bash, -lc]
          args:
            - |
              set -ex
              cd /workspace
              python train.py --lr 2 \\
                --steps 10
"""
    launch = launch_of(a_job(container=command))
    assert [word.text for word in launch.words] == ["train.py", "--lr", "2", "--steps", "10"]
    assert [word.place.line for word in launch.words] == [19, 19, 19, 20, 20]


def test_variables_reach_the_command() -> None:
    """$(NAME) as the kubelet replaces it, from env and from a config map of the file; what a secret says stays as it is written."""
    container = """command: [python, train.py, --lr, $(LR), --steps, $(STEPS), --key, $(KEY), --price, $$(LR)]
          env:
            - {name: LR, value: "0.1"}
            - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
          envFrom: [{configMapRef: {name: settings}}]"""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {STEPS: '7', LR: '9'}\n---\n" + a_job(container=container)
    launch = launch_of(text)
    words = [word.text for word in launch.words]
    assert words == ["train.py", "--lr", "0.1", "--steps", "7", "--key", "$(KEY)", "--price", "$(LR)"]
    assert launch.environment.leaves["LR"].text == "0.1"


@pytest.mark.parametrize(
    ("variables", "want"),
    [
        ("envFrom: [{secretRef: {name: s}}]", True),
        ("envFrom: [{configMapRef: {name: elsewhere}}]", True),
        ("env: [{name: BATCH, valueFrom: {secretKeyRef: {name: s, key: batch}}}]", True),
        ("env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: s, key: token}}}]", False),
        ("env: [{name: BATCH, value: '4'}]", False),
        ("env: []", False),
    ],
)
def test_a_default_is_unsure_where_a_secret_may_say_otherwise(variables: str, want: bool) -> None:
    """What stands in a secret or in a map that is not at hand is not what the script's default says."""
    spec = f"""{{containers: [{{name: c, command: [bash, -c, "python train.py --batch ${{BATCH:-8}}"], {variables},
      resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]}}"""
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec: {{template: {{spec: {spec}}}}}\n"
    (found, *_) = launches(text)
    assert (found.may_not_run or found.words[-1].text.startswith("$")) is want


WRITTEN = """cat > /tmp/args.json <<EOF
{"model_name_or_path": "gpt2", "block_size": 512, "per_device_train_batch_size": SIZE}
EOF
python run_clm.py /tmp/args.json"""
"""A script that writes what its program reads."""


def reading_of(script: str, environment: str = "") -> Reading:
    """What a container's script says."""
    words = script.replace("TRAIN", "torchrun run_clm.py --model_name_or_path gpt2 --block_size 512 --per_device_train_batch_size")
    return read_file("job.yaml", GivenFiles({"job.yaml": a_job(f"command: [bash, -c, {json.dumps(words)}]{environment}")}))


@pytest.mark.parametrize(
    ("script", "want"),
    [
        ("TRAIN ${BS:-8}", True),
        ("BS=${BS:-8}; TRAIN $BS", True),
        ("export BS=${BS:=8}; bash -c 'TRAIN $BS'", True),
        ("X=${X:-8,4}; TRAIN ${X%%,*}", True),
        ("X=${X:-84}; TRAIN ${X:0:1}", True),
        ("TRAIN $(( ${X:-4} * 2 ))", True),
        ("X=${X:-4}; (( BS = X * 2 )); TRAIN $BS", True),
        ('BS=8; [ -n "$SMALL" ] && BS=1; TRAIN $BS', True),
        ('BS=8; if [ "${SMALL:-0}" = 1 ]; then BS=1; fi; TRAIN $BS', True),
        ('if [ -n "$SMALL" ]; then BS=1; else BS=8; fi; TRAIN $BS', True),
        ("case ${SIZE:-l} in s) BS=1;; l) BS=8;; esac; TRAIN $BS", True),
        ("X=${X:-0}; if (( X )); then TRAIN 1; else TRAIN 8; fi", True),
        ('[ -n "$SMALL" ] && exec TRAIN 1; TRAIN 8', True),
        ('if [ -n "$SMALL" ]; then TRAIN 1; exit 0; fi; TRAIN 8', True),
        ("TRAIN 8 ${SMALL:+--fp16}", True),
        ("TRAIN 8 ${EXTRA_ARGS:-}", True),
        ("${LAUNCHER:-torchrun} run_clm.py TRAIN 8", True),
        ('ARGS="TRAIN 8"; [ -n "$SMALL" ] && ARGS="TRAIN 1"; ARGS+=" --fp16"; $ARGS', True),
        ('ARGS=(TRAIN 8); [ -n "$SMALL" ] && ARGS=(TRAIN 1); ARGS+=(--fp16); "${ARGS[@]}"', True),
        ("BS=8; [ -n \"$SMALL\" ] && BS=1; export BS; bash -c 'TRAIN $BS'", True),
        ("X=${X:-4}; TRAIN $(expr $X + 4)", True),
        ("TRAIN $(echo ${X:-8})", True),
        (WRITTEN.replace("SIZE", "${BS:-8}"), True),
        (WRITTEN.replace("SIZE", "8"), False),
        ("BS=8; TRAIN ${BS:-4}", False),
        ("TRAIN 8 --output_dir ${OUT:-/out}", False),
        ('BS=8; [ -n "$TOKEN" ] && echo there; TRAIN $BS', False),
        ('[ -z "$CACHE" ] && export CACHE=/c; TRAIN 8', False),
        ('[ -n "$BROKEN" ] && exit 1; TRAIN 8', False),
        ('[ -n "$DONE" ] && exit 0; TRAIN 8', False),
        ('if [ -n "$AGAIN" ]; then TRAIN 8; else TRAIN 8; fi', False),
        ("export PATH=/x${MORE:+:$MORE}; TRAIN 8", False),
    ],
)
def test_what_an_image_may_set_is_unsure_where_it_decides_a_field(script: str, want: bool) -> None:
    """The value is the one of a run without it; a launch that says the same either way is sure."""
    found = reading_of(script)
    assert found.get("batch.micro_batch_size") == 8
    assert found.may_not_run is want


def test_a_variable_of_the_manifest_is_the_images_no_more() -> None:
    """The container's own environment wins over its image's."""
    found = reading_of("TRAIN ${BS:-8}", "\n          env: [{name: BS, value: '4'}]")
    assert found.get("batch.micro_batch_size") == 4
    assert not found.may_not_run


def test_a_script_by_itself_runs_in_no_image() -> None:
    """Of a shell at hand the defaults hold: nothing is unsure."""
    script = "torchrun run_clm.py --model_name_or_path gpt2 --block_size 512 --per_device_train_batch_size ${BS:-8}\n"
    found = read_file("run.sh", GivenFiles({"run.sh": script}))
    assert found.get("batch.micro_batch_size") == 8
    assert not found.may_not_run


@pytest.mark.parametrize(
    ("script", "want"),
    [
        ("TRAIN 1; TRAIN 8", [1, 8]),
        ("TRAIN 1 && TRAIN 8 && TRAIN 8", [1, 8]),
        ("TRAIN 1 & TRAIN 8 & wait", [1, 8]),
        ("; ".join(f"TRAIN {size}" for size in range(1, 9)), [1, 2, 3, 4]),
        ("TRAIN 1; CUDA_VISIBLE_DEVICES= TRAIN 8", [1]),
        ("TRAIN 1; TRAIN 8 --help", [1]),
        ("TRAIN 1 || TRAIN 8", [1]),
        ("TRAIN 1; [ -f x ] && TRAIN 8", [1]),
        ("TRAIN 1; if [ -f x ]; then exit 0; fi; TRAIN 8", [1]),
        ("TRAIN 1; if [ -f x ]; then exit 1; fi; TRAIN 8", [1, 8]),
        ('TRAIN 1; [ -n "$DONE" ] && exit 0; TRAIN 8', [1]),
        ("exec TRAIN 1; TRAIN 8", [1]),
    ],
)
def test_every_launch_of_a_container_that_surely_runs_is_read(script: str, want: list[int]) -> None:
    """The first, and those that say something else."""
    words = script.replace("TRAIN", "torchrun run_clm.py --model_name_or_path gpt2 --block_size 512 --per_device_train_batch_size")
    found = read_manifest(a_job(f"command: [bash, -c, {json.dumps(words)}]"), "job.yaml", GivenFiles({}), MOST_LAUNCHES)
    assert [each.get("batch.micro_batch_size") for each in found] == want


def test_launches_of_two_objects_are_not_read_beside_each_other() -> None:
    """Each object is a job of its own."""
    one, other = (a_job(f"command: [torchrun, run_clm.py, --model_name_or_path, {model}]") for model in ("gpt2", "gpt2-xl"))
    assert len(read_manifest(f"{one}---\n{other}", "job.yaml", GivenFiles({}), MOST_LAUNCHES)) == 1


def test_config_maps_are_files() -> None:
    """Where they are mounted, by all their keys, by items, by a part of the path, and from the working folder."""
    text = a_job(
        container=f"""{TRAIN}
          workingDir: /conf
          volumeMounts:
            - {{name: all, mountPath: /conf}}
            - {{name: one, mountPath: /etc/one.yaml, subPath: one.yaml}}""",
        spec="""volumes:
        - {name: all, configMap: {name: configs}}
        - {name: one, projected: {sources: [{configMap: {name: configs, items: [{key: b.json, path: one.yaml}]}}]}}""",
    )
    text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: configs}\ndata:\n  a.yaml: |\n    lr: 1\n  b.json: '{}'\n"
    files = launch_of(text, **{"c.yaml": "local"}).files
    assert (files.text("a.yaml"), files.text("/conf/a.yaml"), files.text("/etc/one.yaml")) == ("lr: 1\n", "lr: 1\n", "{}")
    assert files.text("c.yaml") == "local"
    assert files.is_folder("/conf")
    with pytest.raises(FileError):
        files.text("/conf/nowhere.yaml")


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", "h100-80gb"),
        ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB-SHARED}", "a100-80gb"),
        ("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-tesla-a100}", "a100-40gb"),
        ("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-mega-80gb}", "h100-80gb"),
        (
            "nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb, cloud.google.com/gke-gpu-partition-size: 3g.40gb}",
            "h100-80gb/3g.40gb",
        ),
        ("nodeSelector: {karpenter.k8s.aws/instance-gpu-name: a100, karpenter.k8s.aws/instance-gpu-memory: '81920'}", "a100-80gb"),
        ("nodeSelector: {karpenter.k8s.aws/instance-gpu-name: a100}", "a100-40gb"),
        ("nodeSelector: {karpenter.k8s.aws/instance-gpu-name: l40s}", "l40s-48gb"),
        ("nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}", "a100-40gb"),
        ("nodeSelector: {node.kubernetes.io/instance-type: ml.p5en.48xlarge}", "h200-141gb"),
        ("nodeSelector: {node.kubernetes.io/instance-type: Standard_ND96amsr_A100_v4}", "a100-80gb"),
        ("nodeSelector: {node.kubernetes.io/instance-type: a3-highgpu-8g}", "h100-80gb"),
        ("nodeSelector: {node.kubernetes.io/instance-type: m5.large}", None),
        ("nodeSelector: {gpu.nvidia.com/class: A100_NVLINK_80GB}", "a100-80gb"),
        ("nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-MIG-1g.5gb}", "a100-40gb/1g.5gb"),
        ("nodeSelector: {nvidia.com/gpu.product: Quadro-RTX-8000}", "Quadro-RTX-8000"),
        ("nodeSelector: {kubernetes.io/os: linux, accelerator: nvidia}", None),
    ],
)
def test_labels_name_the_card(selector: str, want: str | None) -> None:
    """Of feature discovery, of the clouds; of two cards that a word may mean the smaller; others say nothing."""
    assert around(a_job(spec=selector)).get("gpu.type") == want


def test_required_affinity_names_the_card() -> None:
    """Of several values the smallest card, with a word; what is only preferred, and what is excluded, says nothing."""
    term = (
        "affinity: {{nodeAffinity: {{{which}: {{nodeSelectorTerms: [{{matchExpressions: "
        "[{{key: nvidia.com/gpu.product, operator: {operator}, values: [NVIDIA-A100-SXM4-80GB, NVIDIA-A100-SXM4-40GB]}}]}}]}}}}}}"
    )
    required = term.format(which="requiredDuringSchedulingIgnoredDuringExecution", operator="In")
    launch = launch_of(a_job(spec=required))
    assert launch.around.get("gpu.type") == "a100-40gb"
    assert "may be the card" in launch.around.warnings[0]
    excluded = term.format(which="requiredDuringSchedulingIgnoredDuringExecution", operator="NotIn")
    assert "gpu.type" not in around(a_job(spec=excluded))
    assert "gpu.type" not in around(a_job(spec=term.format(which="preferredDuringSchedulingIgnoredDuringExecution", operator="In")))


def test_slices_are_slices_of_a_card() -> None:
    """With the card that the labels name; without one the answer will say so."""
    sliced = a_job(spec="nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}").replace(
        "nvidia.com/gpu: 8", "nvidia.com/mig-3g.40gb: 1"
    )
    assert around(sliced)["gpu.type"] == "a100-80gb/3g.40gb"
    assert around(sliced)["gpu.count"] == 1
    unnamed = launch_of(a_job().replace("nvidia.com/gpu: 8", "nvidia.com/mig-3g.40gb: 1")).around
    assert ("gpu.type" in unnamed.fields, "3g.40gb" in unnamed.warnings[0]) == (False, True)


@pytest.mark.parametrize(
    ("asked", "want"),
    [
        ("nvidia.com/gpu: 1, nvidia.com/gpumem: 8000", "nvidia.com/gpumem gives a part"),
        ("amd.com/gpu: 8", "amd.com/gpu is no NVIDIA GPU"),
        ("nvidia.com/gpu: many", "'many' cannot be read"),
    ],
)
def test_what_cannot_be_counted_is_told(asked: str, want: str) -> None:
    """Parts of a card, other makers' cards, and what is no number."""
    assert want in launch_of(a_job().replace("nvidia.com/gpu: 8", asked)).around.warnings[0]


def test_a_fraction_in_an_annotation_is_told() -> None:
    """KAI and Run:ai."""
    assert "gpu-fraction: 0.5" in launch_of(a_job(metadata=", annotations: {gpu-fraction: '0.5'}")).around.warnings[0]


@pytest.mark.parametrize(
    ("memory", "want"),
    [("500Gi", 500 << 30), ("64G", 64 * 10**9), ("128974848", 128974848), ("1.5Ti", 3 << 39), ("1e9", 10**9), ("x", None), ("'0'", None)],
)
def test_main_memory_is_that_of_the_pod(memory: str, want: int | None) -> None:
    """Quantities as Kubernetes writes them."""
    text = a_job().replace("nvidia.com/gpu: 8", f"nvidia.com/gpu: 8, memory: {memory}")
    assert around(text).get("node.host_memory_bytes") == want


def test_the_submitters_own_word_wins() -> None:
    """A job document in an annotation: of the pods before the workload, before what the manifest itself says; blocks and dotted keys."""
    spec = "|\n      model: {preset: gpt2}\n      gpu: {type: l4-24gb, count: 2}\n      batch.micro_batch_size: 3\n"
    text = a_job().replace("metadata: {name: a}", f"metadata:\n  annotations:\n    peakgate.io/spec: {spec}")
    text = text.replace("    spec:\n", "    metadata: {annotations: {peakgate.io/spec: '{gpu: {count: 4}}'}}\n    spec:\n", 1)
    launch = launch_of(text)
    got = {path: stated.value for path, stated in launch.own.fields.items()}
    assert (got["gpu.count"], got["gpu.type"], got["model.preset"], got["batch.micro_batch_size"]) == (4, "l4-24gb", "gpt2", 3)
    assert str(launch.own.fields["model.preset"].place) == "job.yaml:5 peakgate.io/spec"
    reading = read_file("job.yaml", GivenFiles({"job.yaml": text}))
    assert (reading.format, reading.get("model.preset"), reading.get("gpu.count"), reading.get("node.gpus")) == ("stated", "gpt2", 4, 8)


@pytest.mark.parametrize("spec", ["'['", "'- a'", "'&a [*a]'", "'text'"])
def test_an_annotation_that_is_no_document_is_told(spec: str) -> None:
    """And says nothing."""
    launch = launch_of(a_job(metadata=f", annotations: {{peakgate.io/spec: {spec}}}"))
    assert "peakgate.io/spec" in launch.around.warnings[0]


def test_an_annotation_that_is_no_yaml_names_its_line() -> None:
    """In words, and not by the name of a class."""
    job = a_job(metadata=", annotations: {peakgate.io/spec: 'model: {preset: ['}")
    (told,) = launch_of(job).own.warnings
    assert re.fullmatch(r"peakgate\.io/spec is no YAML that can be read \(.*\): is not YAML \(line \d+\)", told)


def test_what_does_not_train_is_left_out() -> None:
    """Init containers, and sidecars behind the container with GPUs."""
    sidecar = "containers:\n        - name: logs\n          command: [python, logs.py]\n"
    text = a_job(spec="initContainers: [{name: fetch, command: [python, fetch.py]}]").replace(
        "containers:\n        - name: train", sidecar + "        - name: train"
    )
    programs = [each.program for each in launches(text) if each.program.endswith(".py")]
    assert programs == ["train.py", "logs.py"]


def test_a_list_and_several_documents_are_looked_through() -> None:
    """A Service before the workload, a List around it."""
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1}]}\n---\n"
    assert launch_of(service + a_job()).program == "train.py"
    inner = "\n".join(f"    {line}" for line in a_job().splitlines())
    assert launch_of(f"apiVersion: v1\nkind: List\nitems:\n  -\n{inner}\n").around.get("gpu.count") == 8


def test_a_file_without_a_command_says_so() -> None:
    """A config map alone starts nothing."""
    with pytest.raises(UnreadableError):
        read_file("a.yaml", GivenFiles({"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"}))
