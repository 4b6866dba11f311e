"""Suggestions for published jobs that ran out of memory."""

from __future__ import annotations

import pytest
from tests.bench.accuracy import Json, at
from tests.bench.report import PAGE, page
from tests.bench.suggestions import FIRST, Pair, Top, advised, changed, out_of_memory, pairs, place, top

from peakgate.v1.prediction_pb2 import Suggestion

NO_FITTING_TOP = {
    # Low quality: the source's figure does not move with the micro-batch, so it is that of loading the checkpoint.
    "litgpt-rt-Llama-2-13b-hf-lora-None-mb1-g2": Top.ADMITTED,
    # Low quality: the table may have been made on one of the four GPUs.
    "litgpt-hub-gemma-7b-lora-4xA10G": Top.ADMITTED,
    "litgpt-hub-gemma2-9b-lora-4xA10G": Top.ADMITTED,
    # Neither says which version of its library it ran: LitGPT keeps the logits for longer before 0.4 …
    "litgpt-hub-llama-2-7b-full-4xA10G": Top.ADMITTED,
    # … and bitsandbytes the inputs of 4-bit products before 0.43.
    "qlora17-65b-a6000-bs4-oom": Top.ADMITTED,
    # Low quality: out of memory from fragmentation on a rank that was not measured, at 59 of 80 GB on the one that was.
    "mbridge-l3-70b-sft-base": Top.ADMITTED,
    "mbridge-l3-70b-sft-coreattn-ln-oom": Top.ADMITTED,
    # DeepSpeed's tutorial: by its own document it needs 9 of 16 GB.
    "ds-bertL-squad-pt-v10016-mb6": Top.ADMITTED,
    "ds-bertL-squad-pt-v10016-mb8": Top.ADMITTED,
    "ds-bertL-squad-pt-v10032-mb24": Top.ADMITTED,
    "ds-bertL-squad-pt-v10032-mb32": Top.ADMITTED,
    # Low quality: the lengths of the sequences are not known.
    "unsloth-l7b-oasst-2xt4-hf-bs2-oom": Top.ADMITTED,
    "unsloth-l7b-slimorca-2xt4-hf-bs2-oom": Top.ADMITTED,
    # torch.compile's kernels are not counted, so no plan of a compiled job is known to fit.
    "titan-1993-dsv3-16b-b200-1": Top.NOT_COUNTED,
    "titan-1993-dsv3-16b-b200-2": Top.NOT_COUNTED,
}
"""Rows without a first suggestion that fits, and why."""

NOT_FOUND: dict[tuple[str, str], str] = {}
"""Pairs of rows that are not admitted whose field is not among the first suggestions, and why."""


def expected(row: Json) -> Top:
    """What the list says of a row."""
    return NO_FITTING_TOP.get(str(at(row, "id")), Top.FITS)


@pytest.mark.parametrize("row", out_of_memory(), ids=lambda row: str(at(row, "id")))
def test_the_first_suggestion_makes_a_job_that_ran_out_of_memory_fit(row: Json) -> None:
    """Its changes are written into the document, which the service then admits; what has none is listed with the reason."""
    assert top(row) is expected(row)


def test_the_list_names_rows_of_the_file() -> None:
    """A row that left the file leaves the list."""
    assert set(NO_FITTING_TOP) <= {at(row, "id") for row in out_of_memory()}
    assert set(NOT_FOUND) <= {pair.names for pair in pairs()}


NEEDY = [pair for pair in pairs() if expected(pair.row) is Top.FITS and not pair.alters_training]


@pytest.mark.parametrize("pair", NEEDY, ids=lambda pair: "|".join(pair.names))
def test_what_made_a_sibling_run_is_among_the_first_suggestions(pair: Pair) -> None:
    """The source changed one field and the job ran; the search finds that field too."""
    assert (0 < place(pair, advised(pair.row).suggestions) <= FIRST) == (pair.names not in NOT_FOUND)


def test_a_change_is_written_into_the_part_that_it_names() -> None:
    """Whole numbers stay whole, a part that is not there is made, and the document itself stays as it is."""
    suggestion = Suggestion()
    suggestion.changes["batch.micro_batch_size"].number_value = 2
    suggestion.changes["framework.megatron.distributed_optimizer"].bool_value = True
    document = {"batch": {"micro_batch_size": 4, "sequence_length": 8}}
    want = {"batch": {"micro_batch_size": 2, "sequence_length": 8}, "framework": {"megatron": {"distributed_optimizer": True}}}
    assert changed(document, suggestion) == want
    assert document["batch"]["micro_batch_size"] == 4


def test_a_pair_differs_in_one_part() -> None:
    """Degrees that follow from one another are one part; the field is the one that was chosen."""
    fields = {pair.names: pair.field for pair in pairs()}
    assert fields["mbridge-l3-70b-sft-base", "mbridge-l3-70b-sft-tp8"] == "parallelism.tensor"
    assert [pair.names[0] for pair in pairs() if pair.alters_training].count("tune-856-l3-8b-lora-8k-oom") == 1
    assert all(len({path.partition(".")[0] for path in pair.paths}) == 1 for pair in pairs())


def test_the_page_of_accuracy_is_up_to_date() -> None:
    """A change of any figure shows: `python -m tests.bench.report` writes it. Its dearest part are the searches of this file."""
    assert PAGE.read_text(encoding="utf-8") == page()
