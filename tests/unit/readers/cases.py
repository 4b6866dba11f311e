"""The cases of tests/golden/launches: a launch, and the job document that it must give, written by hand.

A case is a folder `<format>/<case>/` with `command` (a command line), a script `job.sh` or `job.sbatch`, a manifest `manifest.yaml`, or a
config file that is named in `file`; the files that the launch names; and `job.yaml`: the fields that must come out, each by its path, with
`warnings` (how many) and `unread` (a word of each) beside them.
"""

from __future__ import annotations

from pathlib import Path

from peakgate.readers.files import FolderFiles
from peakgate.readers.read import read_command, read_file
from peakgate.readers.reading import Reading

CASES = Path(__file__).parents[2] / "golden" / "launches"
FOLDERS = sorted(path.parent for path in CASES.glob("*/*/job.yaml"))
SCRIPTS = ("job.sh", "job.sbatch", "manifest.yaml")


def read_case(folder: Path) -> Reading:
    """What the reader makes of a case."""
    files = FolderFiles(folder)
    if (folder / "command").exists():
        return read_command((folder / "command").read_text(), files)
    named = (folder / "file").read_text().strip() if (folder / "file").exists() else ""
    (name,) = [named] if named else [each for each in SCRIPTS if (folder / each).exists()]
    return read_file(name, files)
