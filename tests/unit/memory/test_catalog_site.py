"""A site's own models in the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.memory.builders import CONFIG, a_job, a_transformer

from peakgate.memory.catalog.models import MODELS, ModelSpec, all_models, find_model, set_site_models
from peakgate.memory.catalog.site import site_model
from peakgate.memory.job import Model
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError

LLAMA = a_transformer("llama")


@pytest.fixture(autouse=True)
def _no_site() -> Iterator[None]:
    yield
    set_site_models(())


def a_site_model(
    name: str = "acme-1", model: Model | None = None, *, aliases: tuple[str, ...] = (), parameters: int | None = None
) -> ModelSpec:
    """A small model of a site."""
    return site_model(name, model or Model(transformer=LLAMA), aliases=aliases, parameters=parameters, source="here")


def test_a_count_comes_from_the_sizes() -> None:
    """Llama's layer by hand: 4 h² + 3 h f + 2 h with grouped keys, two tables, one last norm (transformers modeling_llama.py)."""
    h, kv, f, vocabulary = 64, 2 * 8, 96, 250
    want = 3 * (2 * h * h + 2 * h * kv + 3 * h * f + 2 * h) + 2 * vocabulary * h + h
    assert a_site_model().published_parameters == want
    assert a_site_model(parameters=want).published_parameters == want


def test_a_config_is_taken_with_what_it_says_beside_sizes() -> None:
    """A bias in the attention comes from the config."""
    plain, biased = (a_site_model(model=Model(hf_config=CONFIG | {"attention_bias": bias})) for bias in (False, True))
    assert biased.published_parameters - plain.published_parameters == 2 * 4 * 64
    assert biased.extras.attention_bias


def test_another_count_is_refused() -> None:
    """The sizes or the count is wrong, and nobody but the site knows which."""
    with pytest.raises(JobError) as caught:
        a_site_model(parameters=7)
    assert [(each.field, "is 7, and the sizes give" in each.description) for each in caught.value.fields] == [("parameters", True)]


def test_the_count_of_a_block_that_nobody_knows_is_taken() -> None:
    """Another family stands for it, whose count is another."""
    assert a_site_model(model=Model(transformer=a_transformer("acme_block")), parameters=7).published_parameters == 7


def test_routing_corrections_are_counted_as_files_do() -> None:
    """DeepSeek-V3's files hold one correction an expert of each routed layer."""
    spec = MODELS["deepseek-v3"]
    assert a_site_model(model=Model(transformer=spec.transformer), parameters=spec.published_parameters).published_parameters


@pytest.mark.parametrize(
    ("model", "want_field"),
    [
        (Model(transformer=a_transformer("llama", heads=7)), "model.transformer.heads"),
        (Model(hf_config={"model_type": "llama", "hidden_size": 64}), "model"),
        (Model(parameters=5), "model"),
    ],
)
def test_sizes_without_meaning_are_refused(model: Model, want_field: str) -> None:
    """The same checks as those of a job; a config without layers gives nothing to count."""
    with pytest.raises(JobError) as caught:
        a_site_model(model=model)
    assert want_field in {each.field for each in caught.value.fields}


def test_a_site_model_is_found_and_predicted() -> None:
    """By its name, an alias and the last part of one, in any case; another set replaces it."""
    set_site_models([a_site_model(aliases=("acme/Acme-1-Base", "/models/acme"))])
    assert {find_model(name).name for name in ("acme-1", "ACME/acme-1-base", "Acme-1-Base", "/models/acme")} == {"acme-1"}
    assert predict(a_job(model=Model(preset="acme-1"))).parameters == a_site_model().published_parameters
    assert "acme-1" in all_models()
    assert "acme-1" not in MODELS
    set_site_models(())
    with pytest.raises(JobError):
        find_model("acme-1")


def test_a_site_may_take_a_published_name() -> None:
    """Its own model comes first, and the table has one row of the name."""
    set_site_models([a_site_model(name="llama-3.1-8b")])
    assert find_model("llama-3.1-8b").source == all_models()["llama-3.1-8b"].source == "here"
    assert len(all_models()) == len(MODELS)


def test_an_unknown_name_hints_at_the_sites_models() -> None:
    """A misspelt name of the site is told as any other."""
    set_site_models([a_site_model(name="acme-giant")])
    with pytest.raises(JobError, match="acme-giant"):
        find_model("acme-gaint")
