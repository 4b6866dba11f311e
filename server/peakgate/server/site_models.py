"""A site's own models: YAML files that PEAKGATE_MODELS names, read when the service starts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from peakgate.memory.catalog.models import ModelSpec
from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.catalog.site import site_model
from peakgate.memory.job import Model
from peakgate.memory.prediction import JobError
from peakgate.server.convert import read_message
from peakgate.server.yaml_lines import YamlError, line_of, load_with_lines
from peakgate.v1.document import DocumentError, parse_job

FIELDS = ("name", "aliases", "transformer", "hf_config", "parameters", "source")
"""What an entry may state: a name, and either sizes or a config."""

LARGEST_BYTES = 1 << 20
"""Of a file of models or a config.json; both have some kilobytes."""


class SiteModelError(ValueError):
    """Models that cannot be taken. Every bad entry is named by file, line and field."""


class _EntryError(Exception):
    """What is wrong with a field of an entry."""

    def __init__(self, field: str, description: str) -> None:
        super().__init__(description)
        self.field = field
        self.description = description


def load_site_models(place: str) -> tuple[ModelSpec, ...]:
    """The models of a file, or of every .yaml and .yml of a folder in the order of their names; none of an empty text.

    Raises SiteModelError.
    """
    if not place:
        return ()
    problems: list[str] = []
    found = [each for file in _files(Path(place)) for each in _models_of(file, problems)]
    problems += _stated_twice(found)
    if problems:
        raise SiteModelError("; ".join(problems))
    return tuple(spec for _, spec in found)


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(each for each in place.iterdir() if each.suffix in (".yaml", ".yml"))
    return [place]


def _models_of(file: Path, problems: list[str]) -> Iterator[tuple[str, ModelSpec]]:
    """(file:line, model) of the good entries of a file; what is wrong with the others goes to `problems`."""
    try:
        entries, lines = load_with_lines(_text(file))
    except YamlError as error:
        problems.append(f"{file}:{error}")
        return
    except _EntryError as error:
        problems.append(f"{file}: {error.description}")
        return
    if not isinstance(entries, list):
        problems.append(f"{file}:1: is no list: write each model as `- name: …`")
        return
    for index, entry in enumerate(entries):
        at = f"[{index}]"
        try:
            place = f"{file}:{line_of(lines, at)}"
            yield place, _spec(entry, file.parent, place)
        except JobError as error:
            problems += [_told(file, lines, at, each.field, each.description) for each in error.fields]
        except DocumentError as error:
            problems += [_told(file, lines, at, field, description) for field, description in error.fields]
        except _EntryError as error:
            problems.append(_told(file, lines, at, error.field, error.description))


def _told(file: Path, lines: dict[str, int], at: str, field: str, description: str) -> str:
    field = field.removeprefix("model.")
    path = at if field == "model" else f"{at}.{field}"
    return f"{file}:{line_of(lines, path)}: {field}: {description}"


def _spec(entry: object, folder: Path, place: str) -> ModelSpec:
    if not isinstance(entry, Mapping):
        raise _EntryError("model", "is no mapping: write `name:` and `transformer:` or `hf_config:`")
    for key in entry:
        if key not in FIELDS:
            raise _EntryError(str(key), f"is no field of a model; {did_you_mean(str(key), FIELDS) or 'there are ' + ', '.join(FIELDS)}")
    parameters = entry.get("parameters")
    if parameters is not None and (not isinstance(parameters, int) or isinstance(parameters, bool)):
        raise _EntryError("parameters", f"{parameters!r} is no whole number")
    stated = entry.get("source")
    return site_model(
        _word(entry.get("name"), "name"),
        _model(entry, folder),
        aliases=_words(entry.get("aliases")),
        parameters=parameters,
        source=f"{stated} ({place})" if stated else place,
    )


def _model(entry: Mapping[str, object], folder: Path) -> Model:
    """The description, read as that of a job document is. Raises DocumentError."""
    stated = {key: entry[key] for key in ("transformer", "hf_config") if entry.get(key) is not None}
    if not stated:
        raise _EntryError("model", "has neither a transformer nor an hf_config: state one")
    if isinstance(stated.get("hf_config"), str):
        stated["hf_config"] = _config(folder / str(stated["hf_config"]))
    return read_message(parse_job({"model": stated}))[0].model


def _config(path: Path) -> object:
    file = path / "config.json" if path.is_dir() else path
    try:
        return json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise _EntryError("hf_config", f"{file} is no JSON: {error}") from error
    except _EntryError as error:
        raise _EntryError("hf_config", f"{file}: {error.description}") from error


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise _EntryError("model", f"is larger than {LARGEST_BYTES >> 20} MiB")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise _EntryError("model", f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _EntryError("model", f"is no text in UTF-8 (byte {error.start})") from error


def _word(value: object, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _EntryError(field, "is missing: state a name" if value is None else f"{value!r} is no name")
    return value.strip()


def _words(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _EntryError("aliases", "is no list: write `aliases: [acme/Acme-13B]`")
    return tuple(_word(each, f"aliases[{index}]") for index, each in enumerate(value))


def _stated_twice(found: list[tuple[str, ModelSpec]]) -> Iterator[str]:
    """Names that two of the site's models have."""
    seen: dict[str, str] = {}
    for place, spec in found:
        for name in dict.fromkeys(word.lower() for word in (spec.name, *spec.aliases)):
            if name in seen:
                yield f"{place}: name: {name!r} stands at {seen[name]} already"
            seen[name] = place
