"""The simulated library has NVIDIA's own prototypes, structures and numbers.

NVIDIA's header comes from the package nvidia-nvml-dev, which is of the dev group only and ships with nothing of ours.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from peakgate.agent.simulated.library import NO_COMPILER, SimulatedNvml, source_texts

STRICT = ("-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wmissing-prototypes", "-fmax-errors=0")
"""A function without a declaration in the header is an error too, so that a mistyped name does not pass."""
OFFICIAL = "-DOFFICIAL_HEADER"


def compiler(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `cc` says, in plain English."""
    environment = os.environ | {"LC_ALL": "C"}
    try:
        return subprocess.run(["cc", *arguments], env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip(f"no C compiler to check the prototypes with. {NO_COMPILER}")


@pytest.fixture(scope="module")
def header_folder() -> Path:
    """The folder of NVIDIA's nvml.h."""
    try:
        files = distribution("nvidia-nvml-dev").files or []
    except PackageNotFoundError:
        pytest.skip("NVIDIA's header is not installed, so the prototypes were not checked: pip install nvidia-nvml-dev")
    return Path(str(next(file for file in files if file.name == "nvml.h").locate())).parent


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the C sources that a test may spoil."""
    for name, text in source_texts().items():
        (tmp_path / name).write_bytes(text)
    return tmp_path


def complaints(paths: Iterable[Path], header_folder: Path) -> str:
    """What the compiler has against these sources beside NVIDIA's header; empty when they agree."""
    checked = [compiler(*STRICT, OFFICIAL, f"-I{header_folder}", str(path)) for path in paths]
    return "".join(done.stderr for done in checked if done.returncode)


def spoil(sources: Path, right: str, wrong: str) -> list[Path]:
    """Writes a mistake into the sources that have a place for it, and returns them; at least one must."""
    places = [path for path in sources.glob("*.[ch]") if right in path.read_text()]
    assert places
    for path in places:
        path.write_text(path.read_text().replace(right, wrong))
    return places


def exported(library: Path) -> set[str]:
    """The NVML functions that the library offers."""
    listed = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True).stdout
    return {name for name in re.findall(r" T (\w+)$", listed, re.MULTILINE) if name.startswith("nvml")}


def test_every_prototype_is_nvidias(sources: Path, header_folder: Path) -> None:
    """The sources compile with NVIDIA's declarations in place of ours."""
    paths = sorted(sources.glob("*.c"))
    assert len(paths) >= 10
    assert complaints(paths, header_folder) == ""


def test_every_function_was_compared(simulated: SimulatedNvml, sources: Path, header_folder: Path) -> None:
    """When all functions return something else, the compiler names each one of the library: none is outside the check."""
    paths = {*spoil(sources, "API nvmlReturn_t", "API void *"), *spoil(sources, "API const char *", "API void *")}
    names = exported(simulated.path)
    assert len(names) >= 34
    assert set(re.findall(r"conflicting types for '(nvml\w+)'", complaints(paths, header_folder))) == names


@pytest.mark.parametrize(
    ("right", "wrong", "want"),
    [
        ("nvmlEventData_t *data, unsigned int timeout_ms", "nvmlEventData_t *data, int timeout_ms", "nvmlEventSetWait_v2"),
        ("nvmlMemory_v2_t *memory", "nvmlMemory_t *memory", "nvmlDeviceGetMemoryInfo_v2"),
        ("unsigned int *count, unsigned int *pids", "unsigned int *pids, unsigned int count", "nvmlDeviceGetAccountingPids"),
        ("nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMaximumMigDeviceCount", "no previous prototype"),
        (".maxMemoryUsage =", ".peak =", "peak"),
        (".smUtil", ".smUtilization", "smUtilization"),
    ],
)
def test_a_wrong_prototype_does_not_compile(sources: Path, header_folder: Path, right: str, wrong: str, want: str) -> None:
    """A type, an order, a name of a function or of a field that NVIDIA does not have is found."""
    assert want in complaints(spoil(sources, right, wrong), header_folder)


def layout(sources: Path, *flags: str) -> list[str]:
    """A line for each structure, field and number of nvml_types.h, as the compiler sees it."""
    text = (sources / "nvml_types.h").read_text()
    lines = []
    for body, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", text, re.DOTALL):
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in re.findall(r"(\w+)(?:\[\d+\])?;", body):
            value = f"offsetof({name}, {field}), sizeof((({name} *)0)->{field})"
            lines.append(f'printf("{name}.{field} %zu %zu\\n", {value});')
    numbers = re.findall(r"^ +(NVML_\w+) = ", text, re.MULTILINE) + re.findall(
        r"^#define (nvml\w+|NVML_VALUE\w+|NVML_DEVICE\w+) ", text, re.MULTILINE
    )
    lines += [f'printf("{number} %lld\\n", (long long)({number}));' for number in map("".join, numbers)]
    program = sources / "layout.c"
    body = "\n".join(lines)
    program.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "nvml_types.h"\nint main(void) {{\n{body}\n}}\n')
    done = compiler("-std=c11", *flags, "-o", str(sources / "layout"), str(program))
    assert done.returncode == 0, done.stderr
    return subprocess.run([sources / "layout"], capture_output=True, text=True, check=True).stdout.splitlines()


def test_every_structure_is_laid_out_as_nvidias(sources: Path, header_folder: Path) -> None:
    """Sizes, offsets and numbers are those of NVIDIA's header: what the library writes is what any NVML program reads."""
    ours = layout(sources)
    assert {"nvmlMemory_v2_t 40", "NVML_ERROR_GPU_IS_LOST 15"} <= set(ours)
    assert ours == layout(sources, OFFICIAL, f"-I{header_folder}")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("unsigned long long usedGpuMemory;", "unsigned int usedGpuMemory;"),
        ("unsigned int reserved[5];", "unsigned int reserved[4];"),
        ("NVML_ERROR_GPU_IS_LOST = 15", "NVML_ERROR_GPU_IS_LOST = 14"),
        ("#define nvmlEventMigConfigChange 0x100LL", "#define nvmlEventMigConfigChange 0x80LL"),
    ],
)
def test_a_wrong_layout_is_found(sources: Path, header_folder: Path, right: str, wrong: str) -> None:
    """A field of another size, or another number, differs from NVIDIA's."""
    spoil(sources, right, wrong)
    assert layout(sources) != layout(sources, OFFICIAL, f"-I{header_folder}")
