"""What a workload names and is not in it: config maps, claims of devices, a training runtime. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.hooks.kubernetes.facts import CLAIM, CLAIM_TEMPLATE
from peakgate.hooks.kubernetes.objects import Object, mapping_at, mappings_at, text_at
from peakgate.hooks.kubernetes.templates import templates_of

MOST_MAPS = MOST_CLAIMS = 8
RUNTIMES = {"TrainingRuntime": "trainingruntimes", "ClusterTrainingRuntime": "clustertrainingruntimes"}
CLAIMS = {CLAIM_TEMPLATE: "resourceclaimtemplates", CLAIM: "resourceclaims"}
"""Kind -> its plural."""

_NAMED_BY = {CLAIM_TEMPLATE: "resourceClaimTemplateName", CLAIM: "resourceClaimName"}


def maps_of(workload: Object) -> list[str]:
    """Names of the config maps that its pods mount or take variables from."""
    names = [text_at(source, "name") for template in templates_of(workload) for source in _sources(mapping_at(template.pod, "spec"))]
    return list(dict.fromkeys(filter(None, names)))[:MOST_MAPS]


def _sources(spec: Object) -> Iterator[Object]:
    for volume in mappings_at(spec, "volumes"):
        yield mapping_at(volume, "configMap")
        yield from (mapping_at(each, "configMap") for each in mappings_at(volume, "projected", "sources"))
    for container in mappings_at(spec, "containers"):
        yield from (mapping_at(each, "configMapRef") for each in mappings_at(container, "envFrom"))
        yield from (mapping_at(each, "valueFrom", "configMapKeyRef") for each in mappings_at(container, "env"))


def claims_named(workload: Object) -> list[tuple[str, str]]:
    """Kinds and names of the claims of its pods."""
    claims = [each for template in templates_of(workload) for each in mappings_at(template.pod, "spec", "resourceClaims")]
    named = [(kind, text_at(claim, key)) for claim in claims for kind, key in _NAMED_BY.items()]
    return [each for each in dict.fromkeys(named) if each[1]][:MOST_CLAIMS]


def runtime_of(workload: Object) -> tuple[str, str] | None:
    """Kind and name of the runtime of a TrainJob."""
    reference = mapping_at(workload, "spec", "runtimeRef")
    kind, name = text_at(reference, "kind") or "ClusterTrainingRuntime", text_at(reference, "name")
    return (kind, name) if name and kind in RUNTIMES and text_at(workload, "kind") == "TrainJob" else None
