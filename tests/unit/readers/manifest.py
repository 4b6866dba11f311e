"""What the tests of manifests share: the launch that trains, and what is said around it."""

from __future__ import annotations

from textwrap import dedent

from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.manifests.read import launches_of_manifest

TRAIN = "command: [python, train.py, --lr, '1']"


def launches(text: str, **files: str) -> list[Launch]:
    """Every launch of a manifest."""
    return list(launches_of_manifest(dedent(text), "job.yaml", GivenFiles(files)))


def launch_of(text: str, **files: str) -> Launch:
    """The first launch of a Python program."""
    return next(each for each in launches(text, **files) if each.program.endswith(".py"))


def around(text: str) -> dict[str, object]:
    """What a manifest says around its training program."""
    return {path: stated.value for path, stated in launch_of(text).around.fields.items()}


def a_job(container: str = "", spec: str = "", job: str = "", metadata: str = "") -> str:
    """A Job with one container that trains on 8 GPUs, and what a test is about in flow style."""
    return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: a{metadata}}}
spec:
  backoffLimit: 1
  {job}
  template:
    spec:
      restartPolicy: Never
      {spec}
      containers:
        - name: train
          image: registry/train:1
          {container or TRAIN}
          resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""
