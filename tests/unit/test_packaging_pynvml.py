"""`import pynvml` means the same module from both distributions that offer it.

NVIDIA's `nvidia-ml-py` holds the module; the PyPI project named `pynvml` is a shim that pulls it and warns at import.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest

# What the agent calls; both installs must offer it.
NEEDED = (
    "nvmlInit",
    "nvmlShutdown",
    "nvmlDeviceGetCount",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetComputeRunningProcesses_v3",
)
PROBE = f"""
import site, sys, warnings
sys.path.insert(0, sys.argv[1])
site.addsitedir(sys.argv[1])  # runs the shim's .pth file, as an interpreter start does
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import pynvml
missing = [name for name in {NEEDED!r} if not hasattr(pynvml, name)]
print(pynvml.__file__, sorted({{warning.category.__name__ for warning in caught}}), missing, sep="\\n")
"""


def probe(folder: Path) -> list[str]:
    """What `import pynvml` does with this folder first: the file it finds, the warnings it gives, the calls that it lacks."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", PROBE, str(folder)], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the PyPI project `pynvml` and what it pulls."""
    folder = tmp_path_factory.mktemp("shim")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "pynvml"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(
            f"the package index cannot be reached, so the PyPI project pynvml was not tested: {done.stderr.strip().splitlines()[-1]}"
        )
    return folder


def test_the_environment_has_nvidias_module() -> None:
    """The project depends on nvidia-ml-py, which owns the module, and not on the shim."""
    assert packages_distributions()["pynvml"] == ["nvidia-ml-py"]
    module = next(file for file in distribution("nvidia-ml-py").files or [] if file.name == "pynvml.py")
    assert probe(Path(str(module.locate())).parent) == [str(module.locate()), "[]", "[]"]


def test_the_shim_gives_the_same_module(shim: Path) -> None:
    """`pip install pynvml` brings nvidia-ml-py's module with every call that the agent needs, and warns about itself."""
    assert list(shim.glob("pynvml-*.dist-info")), "the shim itself is installed"
    assert probe(shim) == [str(shim / "pynvml.py"), "['FutureWarning']", "[]"]
