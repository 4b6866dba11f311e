"""What a submitter allows and keeps."""

from __future__ import annotations

import pytest

from peakgate.server.errors import PeakgateError
from peakgate.server.wishes import Wishes, wishes_of


def test_a_kept_part_holds_all_below_it() -> None:
    """And nothing whose name only begins alike."""
    wishes = Wishes(keep=("parallelism", "batch.micro_batch_size"))
    assert wishes.keeps("parallelism.tensor")
    assert wishes.keeps("batch.micro_batch_size")
    assert not wishes.keeps("batch.sequence_length")
    assert not Wishes(keep=("batch.sequence_length",)).keeps("batch.sequence_length_is")


def test_words_and_paths_are_taken() -> None:
    """As they are stated."""
    wishes = wishes_of(["numerics"], ["batch", "gpu.type"], pareto=True)
    assert wishes == Wishes(allow=frozenset({"numerics"}), keep=("batch", "gpu.type"), pareto=True)


@pytest.mark.parametrize(
    ("allow", "keep", "want_field", "want"),
    [
        (["numeric"], [], "allow", "did you mean numerics"),
        (["gpus"], [], "allow", "numerics, objective, batch"),
        ([], ["paralelism"], "keep", "did you mean parallelism"),
        ([], [""], "keep", "is no field or part of the job"),
        (["batch"], ["batch"], "allow", "keep: batch forbids it"),
    ],
)
def test_what_has_no_meaning_is_refused(allow: list[str], keep: list[str], want_field: str, want: str) -> None:
    """An unknown word or path with the nearest one, and both sides of a contradiction."""
    with pytest.raises(PeakgateError) as caught:
        wishes_of(allow, keep, pareto=False)
    assert caught.value.reason == "FIELD_INVALID"
    assert caught.value.fields[0].field == want_field
    assert want in caught.value.message


def test_every_problem_is_named_at_once() -> None:
    """One error."""
    with pytest.raises(PeakgateError) as caught:
        wishes_of(["x"], ["y", "z"], pareto=False)
    assert [each.field for each in caught.value.fields] == ["allow", "keep", "keep"]
