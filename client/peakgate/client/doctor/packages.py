"""The Python side: versions, and which distribution the module `pynvml` comes from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec

from peakgate.client.doctor.check import Check, State

_NEEDED = (("grpcio", (1, 80)), ("protobuf", (6, 31)))
"""The lower bounds of the distribution's own metadata: older ones cannot load the generated code."""


def package_checks() -> Iterator[Check]:
    """Python, gRPC, protobuf and the NVML binding."""
    yield Check(name="python", state=State.ok, found=f"{sys.version.split()[0]} at {sys.executable}")
    yield Check(name="peakgate", state=State.ok, found=version("peakgate"))
    for name, lowest in _NEEDED:
        yield _needed(name, lowest)
    yield _pynvml()


def _needed(name: str, lowest: tuple[int, int]) -> Check:
    wanted = ".".join(map(str, lowest))
    try:
        found = version(name)
    except PackageNotFoundError:
        return Check(name=name, state=State.bad, found="not installed", remedy=f"pip install '{name}>={wanted}'")
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if numbers < lowest:
        return Check(name=name, state=State.bad, found=found, remedy=f"pip install '{name}>={wanted}'")
    return Check(name=name, state=State.ok, found=found)


def _pynvml() -> Check:
    """The PyPI package `pynvml` is a shim around nvidia-ml-py that warns at import; both give the module of the same name."""
    spec = find_spec("pynvml")
    if spec is None:
        return Check(
            name="pynvml", state=State.note, found="not installed; only the agent needs it", remedy="pip install 'peakgate[agent]'"
        )
    owners = sorted(set(packages_distributions().get("pynvml", ())))
    found = f"{spec.origin} from {', '.join(owners) or 'no distribution'}"
    if owners == ["nvidia-ml-py"]:
        return Check(name="pynvml", state=State.ok, found=f"{found} {version('nvidia-ml-py')}")
    return Check(
        name="pynvml", state=State.note, found=found, remedy="pip uninstall pynvml, then pip install --force-reinstall nvidia-ml-py"
    )
