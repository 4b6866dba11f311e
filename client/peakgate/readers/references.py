"""`${…}` in a YAML file: the value of another key, as OmegaConf has it."""

from __future__ import annotations

import re
from dataclasses import replace

from peakgate.readers.settings import Settings

_REFERENCE = re.compile(r"\$\{([\w.\-]+)\}$")
DEEPEST = 4


def resolved(settings: Settings) -> Settings:
    """The settings with every reference to a key replaced by its value, a few steps deep; one that leads nowhere stays as it is."""
    out = Settings()
    for path, stated in settings.leaves.items():
        value = stated
        for _ in range(DEEPEST):
            match = _REFERENCE.match(value.value.strip()) if isinstance(value.value, str) else None
            found = settings.leaves.get(match[1]) if match else None
            if found is None:
                break
            value = replace(stated, value=found.value)
        out.override(path, value)
    return out
