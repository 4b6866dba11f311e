"""The chart and the kustomize base as the real programs render them, each rendering made once a process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/peakgate"
EXAMPLES = DEPLOY / "helm/examples"
VALUE_SETS = ("warn-one-namespace", "production", "kueue")
# The oldest that the chart allows, one in the middle, the newest whose schemas are here.
MINORS = ("1.30", "1.34", "1.37")
# What a cluster with these operators says that it knows.
OPERATORS = ("monitoring.coreos.com/v1", "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2", "cert-manager.io/v1")
NAMESPACE = "peakgate"
Manifest = Mapping[str, Any]


def program(name: str) -> str:
    """A program beside this Python or on the path; a test without it is skipped, and fails in CI."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: `make dev` brings it")
    return found


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it to its end."""
    return subprocess.run([program(name), *arguments], capture_output=True, text=True, check=False, timeout=60)


def documents(text: str) -> tuple[Manifest, ...]:
    """The objects of a stream of manifests."""
    return tuple(found for found in yaml.load_all(text, Loader=yaml.CSafeLoader) if found)


def template(*options: str, release: str = "peakgate", operators: tuple[str, ...] = OPERATORS) -> subprocess.CompletedProcess[str]:
    """`helm template` of the chart for a cluster that knows these operators."""
    known = [f"--api-versions={each}" for each in operators]
    return run("helm", "template", release, str(CHART), f"--namespace={NAMESPACE}", *known, *options)


@cache
def rendered(values: str = "", *options: str, release: str = "peakgate", operators: tuple[str, ...] = OPERATORS) -> tuple[Manifest, ...]:
    """The chart's objects with an example's values, in the order in which Helm installs them. Tests must not change them."""
    stated = [f"--values={EXAMPLES / values}.yaml"] if values else []
    done = template(*stated, *options, release=release, operators=operators)
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


@cache
def kustomized(folder: Path) -> tuple[Manifest, ...]:
    """The objects of a kustomization."""
    done = run("kubectl", "kustomize", str(folder))
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def named(objects: Sequence[Manifest], kind: str, name: str) -> Manifest:
    """The one object of a kind and name."""
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found
