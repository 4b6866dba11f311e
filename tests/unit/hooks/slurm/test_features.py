"""Constraints on features, as sbatch(1) describes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.hooks.slurm.features import satisfies


@pytest.mark.parametrize(
    ("constraint", "want"),
    [
        ("", True),
        ("a", True),
        ("c", False),
        ("a&b", True),
        ("a&c", False),
        ("c|a", True),
        ("c|d", False),
        ("[c|a]", True),
        ("[rack1|rack2]", False),
        ("(c&d)|a", True),
        ("a&(c|b)", True),
        ("a&(c|d)", False),
        ("c&d|a", True),
        ("a|c&d", False),
        ("a*2", True),
        ("[c*2&a*4]", False),
        ("a & b", True),
        ("gpu80g", True),
        ("gpu-80.g_x", False),
        ("a&", True),
        ("((a", True),
        ("c)", True),
        ("&", True),
        ("a b", True),
    ],
)
def test_a_node_with_a_b_and_gpu80g(constraint: str, want: bool) -> None:
    """And, or, brackets and counts, from the left; what cannot be read leaves no node out."""
    assert satisfies({"a", "b", "gpu80g"}, constraint) is want


@given(st.text(alphabet="abc&|()[]*2, ", max_size=80))
def test_no_constraint_makes_it_fail(constraint: str) -> None:
    """Whatever it holds, there is an answer."""
    assert satisfies({"a"}, constraint) in {True, False}
    assert satisfies({"a"}, "(" * 600 + constraint) in {True, False}
