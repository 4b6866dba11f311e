"""YAML with lines."""

from __future__ import annotations

import pytest

from peakgate.server.yaml_lines import YamlError, line_of, load_with_lines

TEXT = """# models
- name: one
  transformer:
    layers: 2
- name: two
"""


def test_every_key_has_its_line() -> None:
    """Lines count from one, comments too."""
    data, lines = load_with_lines(TEXT)
    assert data == [{"name": "one", "transformer": {"layers": 2}}, {"name": "two"}]
    assert [lines[path] for path in ("[0]", "[0].name", "[0].transformer", "[0].transformer.layers", "[1].name")] == [2, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("path", "want_line"), [("[0].transformer.heads", 3), ("[0].aliases[1]", 2), ("[1].transformer.layers", 5), ("nonsense", 2)]
)
def test_a_path_that_is_not_there_has_the_line_around_it(path: str, want_line: int) -> None:
    """What is missing is told where it should stand."""
    assert line_of(load_with_lines(TEXT)[1], path) == want_line


def test_an_empty_text_is_nothing() -> None:
    """No document, no lines."""
    assert load_with_lines("# nothing\n") == (None, {})


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: 1\nb: [", "2: is not YAML"),
        ("a: 1\na: 2\n", "2: is not YAML: a is stated twice"),
        ("a: 1\n---\nb: 2\n", "is not YAML"),
        ("a: !!python/name:os.system x\n", "1: is not YAML"),
        ("[" * 3000, "1: cannot be read"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(text: str, want: str) -> None:
    """Broken text, a key that is stated twice, a second document, a tag that would run code, nesting without end."""
    with pytest.raises(YamlError, match=want):
        load_with_lines(text)
