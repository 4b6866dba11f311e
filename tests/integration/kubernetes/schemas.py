"""Strict JSON schemas of Kubernetes' own kinds, by minor, and of the operators' kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import jsonschema
import kubernetes_validate.utils
import referencing
from tests.integration.kubernetes.charts import ROOT, Manifest

CUSTOM = ROOT / "tests/golden/kubernetes_crds.jsonl"


@cache
def _contents(path: str) -> referencing.Resource[Any]:
    return referencing.Resource.from_contents(kubernetes_validate.utils.schema_contents(path, ""))


@cache
def _own_kind(minor: str, api_version: str, kind: str) -> jsonschema.protocols.Validator:
    """The strict schemas name each kind as kind-group-version, the group without its domain."""
    group, _, version = api_version.rpartition("/")
    name = "-".join(part for part in (kind.lower(), group.partition(".")[0], version) if part)
    folder = f"kubernetes-json-schema/v{minor}.0-local-strict"
    schema, shared = _contents(f"{folder}/{name}.json"), _contents(f"{folder}/_definitions.json")
    registry = shared @ (schema @ referencing.Registry())
    return jsonschema.Draft202012Validator(schema.contents, registry=registry)


def strict(schema: Any) -> Any:
    """A CRD's schema that also refuses unknown fields, as the API server's strict validation does."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields")
    return {name: strict(value) for name, value in schema.items()} | ({"additionalProperties": False} if closed else {})


@cache
def custom_kinds() -> dict[tuple[str, str], jsonschema.protocols.Validator]:
    """The operators' kinds by (apiVersion, kind)."""
    rows = [json.loads(line) for line in CUSTOM.read_text().splitlines()]
    return {(row["apiVersion"], row["kind"]): jsonschema.Draft202012Validator(strict(row["schema"])) for row in rows}


def schema_problems(objects: Sequence[Manifest], minor: str) -> Iterator[str]:
    """`Kind name: path: what is wrong` of every object."""
    for each in objects:
        key = (each["apiVersion"], each["kind"])
        validator = custom_kinds()[key] if key in custom_kinds() else _own_kind(minor, *key)
        for error in validator.iter_errors(each):
            yield f"{each['kind']} {each['metadata']['name']}: {error.json_path}: {error.message}"
