"""Generates the Python code and its typed stubs from the .proto files: `python proto/generate.py [OUTPUT_FOLDER]`.

Without a folder the code goes beside the .proto files, where it is checked in. With `--image FILE` it writes a
descriptor image with comments instead, which `buf lint` reads without a network.
"""

from __future__ import annotations

import argparse
import importlib.resources
import os
import sys
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parent


def sources() -> list[str]:
    """The .proto files, sorted, so that the output never depends on the file system's order."""
    return sorted(str(path) for path in (ROOT / "peakgate").rglob("*.proto"))


def compile_protos(*outputs: str) -> None:
    """Runs protoc with the given output flags; raises SystemExit when it fails."""
    beside_python = Path(sys.executable).parent  # where the plugins are, also when the environment is not activated
    os.environ["PATH"] = f"{beside_python}{os.pathsep}{os.environ.get('PATH', '')}"
    well_known = importlib.resources.files("grpc_tools") / "_proto"
    status = protoc.main(["protoc", f"-I{ROOT}", f"-I{well_known}", *outputs, *sources()])
    if status:
        sys.exit(f"protoc failed with status {status}")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT)
    parser.add_argument("--image", type=Path)
    arguments = parser.parse_args()
    if arguments.image:
        compile_protos("--include_imports", "--include_source_info", f"-o{arguments.image}")
        return
    flags = ("--python_out", "--mypy_out", "--grpc_python_out", "--mypy_grpc_out")
    compile_protos(*(f"{flag}={arguments.folder}" for flag in flags))


if __name__ == "__main__":
    main()
