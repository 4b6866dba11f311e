"""The nearest known names to one that is not known."""

from __future__ import annotations

from peakgate.memory.catalog.nearest import did_you_mean, nearest

KNOWN = ("llama-3.1-8b", "llama-3.1-70b", "Qwen/Qwen3-8B", "gpt2", "gpt2-xl")


def test_the_shortest_name_that_goes_on_comes_first() -> None:
    """A word that was cut off is completed before spelling is compared."""
    assert nearest("llama-3.1", KNOWN)[:2] == ("llama-3.1-8b", "llama-3.1-70b")


def test_a_slip_of_the_finger_is_found() -> None:
    """One wrong letter does not hide a name, whatever its case, and the name comes back as it is spelt."""
    assert nearest("qwen/qwen3-8c", KNOWN)[0] == "Qwen/Qwen3-8B"


def test_at_most_count_names_come_back() -> None:
    """The list stays short."""
    assert len(nearest("gpt2", KNOWN, count=1)) == 1


def test_nothing_near_gives_nothing() -> None:
    """No guess is better than a wild one."""
    assert nearest("zzz", KNOWN) == ()
    assert nearest("", KNOWN) == ()
    assert did_you_mean("zzz", KNOWN) == ""


def test_the_sentence_names_every_candidate() -> None:
    """The hint reads as a question."""
    assert did_you_mean("gpt2-x", KNOWN).startswith("did you mean gpt2-xl")
