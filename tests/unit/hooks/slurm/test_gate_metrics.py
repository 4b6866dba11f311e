"""The words of the gate's metrics."""

from __future__ import annotations

import re
from pathlib import Path

from peakgate.hooks.slurm import peers
from peakgate.hooks.slurm.gate_metric_table import ADMITTED_BY, CUT_BECAUSE


def test_the_words_of_the_table_are_those_of_the_code() -> None:
    """Why connections are cut, and who admits a job against its verdict."""
    text = Path(str(peers.__file__)).read_text()
    said = set(re.findall(r'(?:refuse|_CutError)\("([a-z_]+)"', text)) | {"too_many", "not_allowed"}
    assert said == set(CUT_BECAUSE)
    verdicts = Path(str(peers.__file__)).with_name("verdicts.py").read_text()
    excuse = verdicts[verdicts.index("def _excuse") : verdicts.index("def _admitted_words")]
    words = {word.split()[0] for word in re.findall(r'return f?"([a-z ]+)', excuse)}
    assert words | {"try"} == set(ADMITTED_BY)
