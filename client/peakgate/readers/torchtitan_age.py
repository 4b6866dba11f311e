"""How old a torchtitan launch is, by the names of its settings; the version decides units, norms and loss of the step.

Source: torchtitan's history: 8570415c3 (June 2025: local_batch_size, in 0.1), fd5a87fa6 (August 2025: hf_assets_path, between 0.1 and 0.2),
08b8b244f (August 2025: [compile]), 8a2686c4a (September 2025: [quantize], in 0.2), 9810191bb (after 0.2.2: configs in Python).
"""

from __future__ import annotations

from peakgate.readers.place import DEFAULT
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings

SIGNS = (
    ("quantize", "0.2.1"),
    ("compile", "0.2"),
    ("model.hf_assets_path", "0.2"),
    ("model.name=qwen3", "0.2"),
    ("model.name=gpt_oss", "0.2.1"),
    ("training.local_batch_size", "0.1"),
    ("training.batch_size", "0.0.2"),
)
"""A setting (with its value), or a section, that is stated -> the version that it takes."""

OF_PYTHON = "0.2.2"


def state_version(settings: Settings, reading: Reading) -> None:
    """Notes the age; torchtitan's own files have that of the table; nothing when no name tells it."""
    known = settings("version")
    if known is not None:
        reading.default("framework.version", known.text, known.place.key)
        return
    stated = {path: each for path, each in settings.leaves.items() if each.place.kind != DEFAULT}
    told = {*stated, *(path.partition(".")[0] for path in stated), *(f"{path}={each.text[:20]}" for path, each in stated.items())}
    for name, version in SIGNS:
        if name in told:
            reading.default("framework.version", version, f"torchtitan: the age of {name}")
            return
