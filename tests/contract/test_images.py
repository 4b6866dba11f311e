"""The images' build file: linted, pinned, not root; what it copies exists; what it installs is what the project needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.contract.sources import ROOT

FOLDER = ROOT / "deploy/docker"
DOCKERFILE = FOLDER / "Dockerfile"
GRPC_PORT, SERVER_HTTP_PORT, AGENT_METRICS_PORT = 50551, 9551, 9552
LOCKS = {"requirements.txt": "all", "requirements-agent.txt": "agent,client"}
PIN = re.compile(r"^([a-z0-9-]+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, arguments), continued lines joined, without comments."""
    lines = [line.strip() for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Each stage's instructions by the stage's name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for word, arguments in instructions(DOCKERFILE.read_text()):
        if word == "FROM":
            found[arguments.split()[-1]] = []
        if found:
            found[next(reversed(found))].append((word, arguments))
    return found


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    """hadolint on a file; every remark counts."""
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is missing: `make dev` brings it")
    return subprocess.run([program, "--failure-threshold=info", str(path)], capture_output=True, text=True, check=False)


def test_hadolint_has_nothing_to_say() -> None:
    """Not even an information."""
    done = lint(DOCKERFILE)
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_bites(tmp_path: Path) -> None:
    """A moving tag and a root user are remarked."""
    path = tmp_path / "Dockerfile"
    path.write_text("FROM python:latest\nUSER root\nRUN cd /tmp && pip install peakgate\n")
    remarks = lint(path)
    assert remarks.returncode != 0
    assert {"DL3007", "DL3002", "DL3013"} <= set(re.findall(r"DL\d+", remarks.stdout))


def test_the_base_is_one_exact_image_without_a_host() -> None:
    """The default is a version to the last figure; every stage stands on it or on a stage before."""
    (default,) = (arguments for word, arguments in instructions(DOCKERFILE.read_text()) if word == "ARG")
    assert re.fullmatch(r"PYTHON=python:3\.\d+\.\d+-slim-[a-z]+", default)
    bases = {name: rows[0][1].split()[0] for name, rows in stages().items()}
    assert set(bases.values()) == {"${PYTHON}", "base"}


@pytest.mark.parametrize("stage", ["agent", "service"])
def test_an_image_is_not_root(stage: str) -> None:
    """The base ends as a numbered user with a numbered group, which Kubernetes can see is not root, and no stage after it changes that."""
    rows = stages()
    assert [arguments for word, arguments in rows["base"] if word == "USER"] == ["10001:10001"]
    assert [word for word, _ in rows[stage] if word in {"USER", "RUN"}] == []


def test_the_images_open_the_promised_ports() -> None:
    """gRPC and HTTP of the service, which is what a build without a target makes; the agent's metrics."""
    ports = {name: [arguments.split() for word, arguments in rows if word == "EXPOSE"] for name, rows in stages().items()}
    assert list(ports)[-1] == "service"
    assert ports["service"] == [[str(GRPC_PORT), str(SERVER_HTTP_PORT)]]
    assert ports["agent"] == [[str(AGENT_METRICS_PORT)]]


def test_the_images_copy_files_that_exist() -> None:
    """Every file that the build copies is in the repository and let through by the ignore file, and nothing else is."""
    rows = instructions(DOCKERFILE.read_text())
    copied = {name for word, arguments in rows if word == "COPY" and "--from" not in arguments for name in arguments.split()[:-1]}
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_everything_is_installed_by_its_hash() -> None:
    """pip checks hashes and builds nothing but the project itself, which brings nothing along."""
    commands = [arguments for word, arguments in instructions(DOCKERFILE.read_text()) if word == "RUN" and "pip " in arguments]
    for command in commands:
        assert "--require-hashes --only-binary=:all:" in command or "--no-deps" in command, command


@pytest.mark.parametrize("name", [*LOCKS, "requirements-build.txt"])
def test_a_lock_is_pins_with_hashes(name: str) -> None:
    """Nothing stands in it but packages, each at one version with the hashes of its files: no address of an index."""
    assert PIN.sub("", (FOLDER / name).read_text()).strip() == ""


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_what_the_project_asks_for(name: str) -> None:
    """Every dependency of the extras at a version that pyproject.toml allows (else: deploy/docker/lock.sh)."""
    pins = {match[1]: match[2] for match in PIN.finditer((FOLDER / name).read_text())}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [Requirement(text) for text in project["dependencies"]]
    waiting, seen = LOCKS[name].split(","), set()
    while waiting:
        seen.add(extra := waiting.pop())
        for need in map(Requirement, project["optional-dependencies"][extra]):
            waiting += need.extras - seen if need.name == "peakgate" else ()
            needs += [] if need.name == "peakgate" else [need]
    assert needs
    assert [str(need) for need in needs if not need.specifier.contains(pins.get(need.name.lower().replace("_", "-"), "0"))] == []
