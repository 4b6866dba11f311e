"""Compiles the simulated libnvidia-ml.so.1 and puts it where pynvml finds it.

pynvml opens "libnvidia-ml.so.1" by that name. A library that is already loaded with the same soname is what the loader then gives it,
so loading ours by its path first is enough: no environment variable, no file outside the cache. For another program there is
`environment_for`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

import platformdirs

from peakgate.agent.errors import MissingPartError, UsageError
from peakgate.agent.simulated.scenario import scenario_text

SONAME = "libnvidia-ml.so.1"
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread", f"-Wl,-soname,{SONAME}")
NO_COMPILER = "Install a C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev; Fedora, RHEL: dnf install gcc)"
SCENARIO_VARIABLE = "PEAKGATE_SIMULATED_NVML"
"""Names the scenario's file, for a program that is started with the library on LD_LIBRARY_PATH."""


def source_texts() -> dict[str, bytes]:
    """The C sources and headers by name."""
    folder = resources.files("peakgate.agent.simulated")
    return {entry.name: entry.read_bytes() for entry in sorted(folder.iterdir(), key=lambda entry: entry.name) if _is_source(entry.name)}


def compiled_library(*, cache: Path | None = None, compiler: str = "cc") -> Path:
    """The library's path; compiled at the first use of this source by this user. Raises MissingPartError without a compiler."""
    texts = source_texts()
    digest = hashlib.sha256(b"\0".join([*texts.values(), " ".join(FLAGS).encode()])).hexdigest()[:16]
    folder = (cache or platformdirs.user_cache_path("peakgate")) / "simulated-nvml" / digest
    library = folder / SONAME
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _compile(texts, library, compiler)
    return library


def environment_for(library: Path, scenario: Path) -> dict[str, str]:
    """What makes an unmodified program use the library with the scenario of that file (without variables)."""
    return {"LD_LIBRARY_PATH": str(library.parent), SCENARIO_VARIABLE: str(scenario)}


class SimulatedNvml:
    """The library in this process. pynvml must be initialised after `load`."""

    def __init__(self, library: Path) -> None:
        self.path = library
        self._library = ctypes.CDLL(str(library))
        self._library.simulated_nvml_load.argtypes = [ctypes.c_char_p]
        self._library.simulated_nvml_set_time.argtypes = [ctypes.c_double]
        self._library.simulated_nvml_set_time.restype = None
        self._library.simulated_nvml_time.restype = ctypes.c_double
        self._library.simulated_nvml_calls.restype = ctypes.c_long
        self._library.simulated_nvml_calls_of.argtypes = [ctypes.c_char_p]
        self._library.simulated_nvml_calls_of.restype = ctypes.c_long

    def load(self, text: str) -> None:
        """Begins a scenario at its second 0. Raises UsageError that names the first line that is not understood."""
        line = int(self._library.simulated_nvml_load(text.encode()))
        if line:
            raise UsageError(f"scenario line {line} is not understood: {text.splitlines()[line - 1].strip()!r}")

    def set_time(self, seconds: float) -> None:
        """Stands the scenario's clock at `seconds`; a negative value lets it run."""
        self._library.simulated_nvml_set_time(seconds)

    def time(self) -> float:
        """The scenario second that it is."""
        return float(self._library.simulated_nvml_time())

    def calls(self, function: str | None = None) -> int:
        """NVML calls, or those of one C function, since the scenario was loaded or this was last asked."""
        if function is None:
            return int(self._library.simulated_nvml_calls())
        return int(self._library.simulated_nvml_calls_of(function.encode()))


def simulate(spec: str) -> SimulatedNvml:
    """Compiles, loads and begins the scenario that `spec` means (see `scenario_text`)."""
    text = scenario_text(spec)
    simulated = SimulatedNvml(compiled_library())
    simulated.load(text)
    return simulated


def _is_source(name: str) -> bool:
    return name.endswith((".c", ".h"))


def _compile(texts: dict[str, bytes], library: Path, compiler: str) -> None:
    program = shutil.which(compiler)
    if program is None:
        raise MissingPartError("the simulated NVML needs a C compiler", remedy=NO_COMPILER)
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        for name, text in texts.items():
            Path(scratch, name).write_bytes(text)
        sources = [str(Path(scratch, name)) for name in texts if name.endswith(".c")]
        built = Path(scratch, SONAME)
        done = subprocess.run([program, *FLAGS, "-o", str(built), *sources], capture_output=True, text=True, check=False)  # noqa: S603 (our own arguments)
        if done.returncode != 0:
            raise MissingPartError(f"{program} could not compile the simulated NVML: {done.stderr.strip()[-500:]}", remedy=NO_COMPILER)
        os.replace(built, library)  # noqa: PTH105 (two processes may race: the last one wins, whole)
