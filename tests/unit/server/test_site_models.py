"""Models of a site from YAML files."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest
from tests.unit.memory.builders import CONFIG

from peakgate.server.site_models import FIELDS, SiteModelError, load_site_models

GOOD = """
- name: acme-small
  aliases: [acme/Acme-Small, acme/Acme-Small-Instruct]
  transformer: {block: llama, layers: 2, hidden_size: 64, heads: 4, ffn_hidden_size: 96, vocab_size: 100}
  parameters: 82752
  source: the training team
"""


def written(folder: Path, text: str, name: str = "models.yaml") -> Path:
    """A file with this text."""
    path = folder / name
    path.write_text(text)
    return path


def refused(path: Path) -> str:
    """Why models are not taken."""
    with pytest.raises(SiteModelError) as caught:
        load_site_models(str(path))
    return str(caught.value)


def test_a_file_of_models(tmp_path: Path) -> None:
    """2 (4·64² + 3·64·96 + 2·64) + 2·100·64 + 64 parameters, as the file says; the source tells who said it and where."""
    path = written(tmp_path, GOOD)
    (spec,) = load_site_models(str(path))
    assert spec.published_parameters == 2 * (4 * 64**2 + 3 * 64 * 96 + 2 * 64) + 2 * 100 * 64 + 64 == 82752
    assert spec.aliases == ("acme/Acme-Small", "acme/Acme-Small-Instruct")
    assert spec.source == f"the training team ({path}:2)"


def test_the_readmes_entry_is_taken(tmp_path: Path) -> None:
    """What an operator copies, with a config of the sizes of Llama's 13B beside it."""
    readme = (Path(__file__).parents[3] / "README.md").read_text()
    (entry,) = re.findall(r"^ +- name: acme-13b\n.*?(?=^ +```)", readme, re.DOTALL | re.MULTILINE)
    sizes = {"num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40, "intermediate_size": 13824, "vocab_size": 32000}
    written(tmp_path, json.dumps({"model_type": "llama"} | sizes), "config.json")
    text = textwrap.dedent(entry).replace("/models/acme-13b/config.json", "config.json")
    (spec,) = load_site_models(str(written(tmp_path, text)))
    assert (spec.name, spec.published_parameters) == ("acme-13b", 13_015_864_320)
    assert spec.aliases == ("acme/Acme-13B-Chat", "/models/acme-13b")


def test_nothing_is_named() -> None:
    """A service without models of a site."""
    assert load_site_models("") == ()


def test_a_folder_is_read_in_order(tmp_path: Path) -> None:
    """Every .yaml and .yml, and nothing else."""
    for number, name in enumerate(("b.yml", "a.yaml", "c.txt")):
        written(tmp_path, f"- name: model-{number}\n  hf_config: config.json\n", name)
    written(tmp_path, json.dumps(CONFIG), "config.json")
    assert [spec.name for spec in load_site_models(str(tmp_path))] == ["model-1", "model-0"]


@pytest.mark.parametrize(
    "stated", ["config.json", ".", "{model_type: llama, num_hidden_layers: 2, hidden_size: 64, num_attention_heads: 4}"]
)
def test_a_config_is_a_file_a_folder_or_written_out(tmp_path: Path, stated: str) -> None:
    """Paths begin at the file that names them."""
    written(tmp_path, json.dumps(CONFIG), "config.json")
    (spec,) = load_site_models(str(written(tmp_path, f"- name: acme\n  hf_config: {stated}\n")))
    assert (spec.transformer.layers, spec.transformer.hidden_size) == (2, 64)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("name: acme\n", ":1: is no list"),
        ("", ":1: is no list"),
        ("- acme\n", ":1: model: is no mapping"),
        ("- transformer: {block: llama, layers: 2, hidden_size: 64, heads: 4}\n", ":1: name: is missing"),
        ("- name: acme\n", ":1: model: has neither a transformer nor an hf_config"),
        ("- name: acme\n  alias: [x]\n", ":2: alias: is no field of a model; did you mean aliases?"),
        (f"{GOOD}  zzzz: 1\n", f":7: zzzz: is no field of a model; there are {', '.join(FIELDS)}"),
        (GOOD.replace("[acme/Acme-Small, acme/Acme-Small-Instruct]", "acme"), ":3: aliases: is no list"),
        (GOOD.replace("[acme/Acme-Small, acme/Acme-Small-Instruct]", "[7]"), ":3: aliases[0]: 7 is no name"),
        (GOOD.replace("82752", "82753"), ":5: parameters: is 82,753, and the sizes give 82,752"),
        (GOOD.replace("82752", "many"), ":5: parameters: 'many' is no whole number"),
        (GOOD.replace("layers: 2", "layer: 2"), ":4: transformer.layer: "),
        (GOOD.replace("layers: 2", "layers: two"), ":4: transformer.layers: "),
        (GOOD.replace("heads: 4", "heads: 5"), ":4: transformer.heads: 5 heads do not divide"),
        (f"{GOOD}  hf_config: {{model_type: llama}}\n", ":2: model: states transformer and hf_config"),
        ("- name: acme\n  hf_config: away.json\n", ":2: hf_config: "),
        ("- name: acme\n  hf_config: models.yaml\n", ":2: hf_config: "),
        ("- name: acme\n  hf_config: {model_type: llama, hidden_size: 64}\n", ":1: model: model: the config does not say layers"),
        ("- name: [\n", ":2: is not YAML"),
        (GOOD + GOOD, ":8: name: 'acme-small' stands at /models.yaml:2 already"),
    ],
)
def test_a_bad_entry_is_refused_with_its_line(tmp_path: Path, text: str, want: str) -> None:
    """The file, the line, the field and what is wrong with it."""
    assert want in refused(written(tmp_path, text)).replace(str(tmp_path), "")


def test_every_bad_entry_is_named_at_once(tmp_path: Path) -> None:
    """A good one between them is no problem."""
    message = refused(written(tmp_path, f"- name: one\n- name: two\n{GOOD}- name: three\n"))
    assert [line in message for line in ("yaml:1: ", "yaml:2: ", "yaml:3: ", "yaml:9: ")] == [True, True, False, True]


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """So is one that is far too large, or no text."""
    assert "No such file" in refused(tmp_path / "away.yaml")
    assert "is larger than 1 MiB" in refused(written(tmp_path, "#" * (1 << 20 | 1)))
    path = tmp_path / "bytes.yaml"
    path.write_bytes(b"\xff\xfe\xfa")
    assert "no text in UTF-8" in refused(path)
