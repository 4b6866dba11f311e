"""The operators' file of rules, read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ValidationError

LARGEST_BYTES = 1 << 20
Rules = TypeVar("Rules", bound=BaseModel)


class RulesError(Exception):
    """A file that states no rules, in words for an operator."""


def yaml_word(value: object) -> object:
    """A word of a file; YAML makes false of a bare `off`."""
    return "off" if value is False else value


def read_rules(path: Path, model: type[Rules]) -> Rules:
    """The rules of a file; an empty one states none. Raises RulesError that names every fault."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise RulesError(f"{path}: {error.strerror or error}") from error
    if len(text) > LARGEST_BYTES:
        raise RulesError(f"{path} is larger than {LARGEST_BYTES} bytes")
    try:
        told = yaml.safe_load(text)
        return model.model_validate({} if told is None else told)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc'])) or 'the file'}: {each['msg']}" for each in error.errors()]
        raise RulesError(f"{path}: {'; '.join(faults)}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RulesError(f"{path} is no YAML: {' '.join(str(error).split())[:200]}") from error
