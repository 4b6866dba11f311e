"""The operators' file of modes."""

from __future__ import annotations

from pathlib import Path

import pytest

from peakgate.hooks.kubernetes.rules import Labels, Mode, Rules
from peakgate.hooks.rules_file import RulesError, read_rules

FILE = """
mode: audit
labels: stricter
namespaces:
  - {names: [team-a, "ml-*"], mode: enforce}
  - {names: ["ml-lab"], mode: off}
overrides: {groups: [sre], users: [alice]}
"""


def rules(tmp_path: Path, text: str = FILE) -> Rules:
    """The rules of a text."""
    (tmp_path / "rules.yaml").write_text(text)
    return read_rules(tmp_path / "rules.yaml", Rules)


@pytest.mark.parametrize(
    ("namespace", "labels", "want"),
    [
        ("other", (), Mode.audit),
        ("team-a", (), Mode.enforce),
        ("ml-lab", (), Mode.enforce),
        ("other", ("warn",), Mode.warn),
        ("other", ("off",), Mode.audit),
        ("team-a", ("off",), Mode.enforce),
        ("other", ("", "nonsense", "enforce"), Mode.enforce),
        ("other", ("warn", "enforce"), Mode.enforce),
        ("other", ("off", "enforce"), Mode.enforce),
    ],
)
def test_the_first_rule_holds_and_labels_make_it_stricter(tmp_path: Path, namespace: str, labels: tuple[str, ...], want: Mode) -> None:
    """A label is no way round a rule, and a workload's none round its namespace's: the strictest of them counts."""
    assert rules(tmp_path).mode_of(namespace, labels) is want


@pytest.mark.parametrize(("word", "want"), [("nothing", Mode.audit), ("stricter", Mode.audit), ("any", Mode.off)])
def test_what_a_label_can_do_is_the_operators_word(tmp_path: Path, word: str, want: Mode) -> None:
    """Of a label that wishes for off."""
    found = rules(tmp_path, FILE.replace("stricter", word))
    assert found.labels is Labels(word)
    assert found.mode_of("other", ("off",)) is want
    assert found.mode_of("other", ("off", "warn")) is {"stricter": Mode.warn}.get(word, want)


@pytest.mark.parametrize(
    ("user", "groups", "want"), [("alice", (), True), ("bob", ("sre",), True), ("bob", ("ml",), False), ("", (), False)]
)
def test_who_may_override(tmp_path: Path, user: str, groups: tuple[str, ...], *, want: bool) -> None:
    """Those whom the file names."""
    assert rules(tmp_path).may_override(user, groups) is want


def test_nothing_stated_warns_and_lets_nobody_override(tmp_path: Path) -> None:
    """An empty file."""
    found = rules(tmp_path, "")
    assert found.mode_of("x") is Mode.warn
    assert not found.may_override("root", ("system:masters",))


@pytest.mark.parametrize("text", ["mode: deny", "mdoe: warn", "namespaces: [{mode: warn}]", "overrides: {groups: 5}"])
def test_a_file_that_states_no_rules_is_told(tmp_path: Path, text: str) -> None:
    """With the file's name and the fault."""
    with pytest.raises(RulesError, match=r"rules\.yaml"):
        rules(tmp_path, text)
