"""gate.yaml: who is judged how."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml
from tests.contract.sources import ROOT

from peakgate.hooks.rules_file import RulesError, read_rules
from peakgate.hooks.slurm.rules import Mode, Rules, Who, WithoutAnswer

TEXT = """
mode: shadow
exempt_accounts: vip
rules:
- {user: [ann, 1002], mode: off}
- {partition: debug, mode: off}
- {partition: [h100, a100], qos: long, mode: enforce}
- {account: physics, mode: warn}
- {partition: h100, without_answer: refuse}
"""


def rules(text: str = TEXT) -> Rules:
    """Rules of a text."""
    return Rules.model_validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("who", "want"),
    [
        (Who(), Mode.shadow),
        (Who(users=("ann", "1001")), Mode.off),
        (Who(users=("bob", "1002")), Mode.off),
        (Who(partitions=("debug",)), Mode.off),
        (Who(partitions=("h100",)), Mode.shadow),
        (Who(partitions=("h100",), qos="long"), Mode.enforce),
        (Who(partitions=("cpu",), qos="long", account="physics"), Mode.warn),
        (Who(partitions=("debug", "h100"), qos="long"), Mode.enforce),
        (Who(partitions=("h100", "debug"), qos="long"), Mode.enforce),
    ],
)
def test_the_first_rule_that_holds_sets_the_mode(who: Who, want: Mode) -> None:
    """Of several partitions the strictest counts, in any order."""
    assert rules().treatment(who).mode is want


def test_a_rule_sets_what_it_names() -> None:
    """One that says nothing of the mode leaves it to the others."""
    found = rules().treatment(Who(partitions=("h100",), account="physics"))
    assert (found.mode, found.without_answer) == (Mode.warn, WithoutAnswer.refuse)
    assert rules().treatment(Who(partitions=("a100", "h100"))).without_answer is WithoutAnswer.refuse


def test_a_file_that_says_nothing_is_shadow() -> None:
    """A site begins there."""
    found = Rules()
    assert (found.treatment(Who()).mode, found.is_exempt("vip"), found.override_of("")) == (Mode.shadow, False, None)


def test_exempt_accounts_are_known_by_name() -> None:
    """And no others; the account that nobody stated is none of them."""
    assert [rules().is_exempt(name) for name in ("vip", "vi", "")] == [True, False, False]


def test_a_word_may_be_plain_or_its_digest() -> None:
    """The file need not show it."""
    digest = hashlib.sha256(b"sesame").hexdigest()
    found = rules(f"overrides: [{{name: day, word: barley}}, {{name: night, sha256: {digest}}}]")
    names = [each.name if (each := found.override_of(word)) else "" for word in ("barley", "sesame", "rye", "", digest)]
    assert names == ["day", "night", "", "", ""]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("mode: loud", "mode: Input should be"),
        ("modes: warn", "modes: Extra inputs"),
        ("rules: [{mode: warn}]", "names no partition"),
        ("rules: [{partition: x}]", "sets neither"),
        ("overrides: [{name: x}]", "needs either word or sha256"),
        ("overrides: [{name: x, word: a, sha256: " + "a" * 64 + "}]", "needs either word or sha256"),
        ("overrides: [{name: x, sha256: abc}]", "sha256"),
        ("- mode", "the file: Input should be"),
        ("a: [", "is no YAML"),
        ("mode: \x00", "is no YAML"),
        ("x" * (2 << 20), "is larger than"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, text: str, want: str) -> None:
    """With the file and the place in it."""
    path = tmp_path / "gate.yaml"
    path.write_text(text)
    with pytest.raises(RulesError, match=want) as caught:
        read_rules(path, Rules)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """As the system says it."""
    with pytest.raises(RulesError, match="No such file"):
        read_rules(tmp_path / "none.yaml", Rules)


def test_an_empty_file_and_a_bare_off_are_read(tmp_path: Path) -> None:
    """YAML takes a bare off for false."""
    path = tmp_path / "gate.yaml"
    path.write_text("")
    assert read_rules(path, Rules) == Rules()
    path.write_text("mode: off\nrules:\n- {user: x, mode: off}\n")
    assert (read_rules(path, Rules).mode, read_rules(path, Rules).rules[0].mode) == (Mode.off, Mode.off)


def test_the_example_is_read() -> None:
    """It begins in shadow and refuses nobody."""
    found = read_rules(ROOT / "deploy/slurm/gate.yaml", Rules)
    assert found.treatment(Who()).mode is Mode.shadow
    assert found.treatment(Who(partitions=("h100",), qos="long")).mode is Mode.warn
    assert {rule.mode for rule in found.rules} == {Mode.off, Mode.shadow, Mode.warn}
