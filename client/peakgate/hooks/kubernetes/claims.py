"""GPUs that a pod claims by dynamic resource allocation: requests of its claims, with the devices that may be given. Pure.

resource.k8s.io: a pod's `resourceClaims` name a ResourceClaimTemplate or a ResourceClaim; a request names a class and expressions, directly
(v1beta1) or below `exactly` (v1), or alternatives below `firstAvailable`. NVIDIA's driver publishes `type`, `productName`, `profile` and
the capacity `memory` of gpu.nvidia.com (kubernetes-sigs/dra-driver-nvidia-gpu#719 shows a node's).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from peakgate.hooks.kubernetes.candidates import Candidate
from peakgate.hooks.kubernetes.cel import Condition, conditions_of
from peakgate.hooks.kubernetes.facts import Device, Facts
from peakgate.hooks.kubernetes.objects import Object, at, list_at
from peakgate.hooks.kubernetes.quantities import bytes_of, gibibytes
from peakgate.hooks.kubernetes.slices import slices_named
from peakgate.readers.launchers.gpu_names import gpus_named
from peakgate.readers.manifests.pods import Pods, members

DRIVER = "gpu.nvidia.com"
CLASSES = {DRIVER: "gpu", "mig.nvidia.com": "mig"}
"""Classes that NVIDIA's driver installs, and the type of their devices."""

MOST_ALTERNATIVES = 8
"""FirstAvailableDeviceRequestMaxSize."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """`count` devices of one kind that meet all conditions."""

    count: int
    conditions: tuple[Condition, ...]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What a pod claims: alternatives of which it gets one. `doubt`: why it cannot be told."""

    alternatives: tuple[Wanted, ...] = ()
    doubt: str = ""


def claimed_by(pods: Pods, facts: Facts) -> Claimed | None:
    """The GPUs of a pod's claims; None where it claims none."""
    found: list[Claimed] = []
    for claim in members(pods.spec, "resourceClaims"):
        name = claim.first("resourceClaimTemplateName", "resourceClaimName")
        if name is None:
            continue
        spec = facts.claims.get(f"{facts.namespace}/{name.text}") or facts.claims.get(name.text)
        if spec is None:
            return Claimed(doubt=f"the claim {name.text[:80]} is not known")
        for request in list_at(spec, "devices", "requests"):
            told = _of_request(request, f"claim {name.text}", facts)
            found += [told] if told is not None else []
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    return next((each for each in found if each.doubt), None) or _together(found)


def classes_named(claims: Mapping[str, Object]) -> list[str]:
    """The DeviceClasses that claims name, but for the driver's own."""
    requests = [each for spec in claims.values() for each in list_at(spec, "devices", "requests")]
    named = [str(at(one, "deviceClassName") or "") for each in requests for one in _options(each)]
    return [each for each in dict.fromkeys(named) if each and each not in CLASSES]


def _options(request: object) -> Sequence[object]:
    """What a request asks for in one form or the other: one of several, or one thing."""
    return list_at(request, "firstAvailable")[:MOST_ALTERNATIVES] or [at(request, "exactly") or request]


def _together(found: Sequence[Claimed]) -> Claimed:
    """Several requests of like devices add up."""
    kinds = {each.alternatives[0].conditions for each in found if len(each.alternatives) == 1}
    if len(kinds) != 1 or any(len(each.alternatives) != 1 for each in found):
        return Claimed(doubt="its claims ask for GPUs of several kinds")
    count = sum(each.alternatives[0].count for each in found)
    return Claimed(alternatives=(replace(found[0].alternatives[0], count=count),))


def _of_request(request: object, source: str, facts: Facts) -> Claimed | None:
    named = f"{source} request {at(request, 'name')}"
    is_several = bool(list_at(request, "firstAvailable"))
    options = [_wanted(each, f"{named}/{at(each, 'name')}" if is_several else named, facts) for each in _options(request)]
    if all(each is None for each in options):
        return None
    if any(each is None or not each.count for each in options):
        return Claimed(doubt=f"{named} does not say how many GPUs it takes")
    return Claimed(alternatives=tuple(each for each in options if each is not None))


def _wanted(request: object, source: str, facts: Facts) -> Wanted | None:
    """None for devices that are no GPUs."""
    kind = str(at(request, "deviceClassName") or "")
    own = [str(at(each, "cel", "expression") or "") for each in list_at(request, "selectors")]
    expressions = [*facts.classes.get(kind, ()), *own]
    if kind not in CLASSES and not any(DRIVER in each for each in expressions):
        return None
    conditions = [each for expression in expressions for each in conditions_of(expression)]
    if kind in CLASSES:
        conditions.append(Condition(name="type", texts=(CLASSES[kind],)))
    count = at(request, "count")
    if at(request, "allocationMode") == "All" or at(request, "adminAccess"):
        count = 0
    whole = count if isinstance(count, int) and not isinstance(count, bool) else 1 if count is None else 0
    return Wanted(count=whole, conditions=tuple(dict.fromkeys(conditions)), source=source)


def published(wanted: Wanted, devices: Sequence[Device]) -> list[Candidate]:
    """The devices that may be given, each kind once."""
    fitting = [
        each for each in devices if each.driver == DRIVER and all(test.allows(each.attributes, each.capacity) for test in wanted.conditions)
    ]
    found = dict.fromkeys(_of_device(each.attributes, each.capacity) for each in fitting)
    return [_counted(each, wanted) for each in found if each is not None]


def stated(wanted: Wanted, catalogue: Iterable[str]) -> list[Candidate]:
    """What the conditions say themselves: each product that is named, or each card that has the profile, else the least memory that they
    allow. None where one of these is not known."""
    products = next((each.texts for each in wanted.conditions if each.name == "productName" and each.texts), ())
    profiles = next((each.texts for each in wanted.conditions if each.name == "profile" and each.texts), ())
    if not products and not profiles:
        return [_counted(each, wanted) for each in _at_least(wanted)]
    if not products:
        found = [slices_named(profile, catalogue) for profile in profiles]
    elif not profiles and Condition(name="type", texts=("mig",)) in wanted.conditions:
        return []
    else:
        found = [
            [_product(product, name, profile) for name in gpus_named(product)] for product in products for profile in profiles or ("",)
        ]
    return [_counted(each, wanted) for one in found for each in one] if all(found) else []


def _counted(card: Candidate, wanted: Wanted) -> Candidate:
    return replace(card, count=wanted.count, count_source=wanted.source)


def _of_device(attributes: Mapping[str, object], capacity: Mapping[str, str]) -> Candidate | None:
    size, product, profile = (
        bytes_of(capacity.get("memory", "")) or 0,
        str(attributes.get("productName", "")),
        str(attributes.get("profile", "")),
    )
    names = gpus_named(product)
    name = names[0] if len(names) == 1 else ""
    if name and profile:
        name = f"{name.partition('/')[0]}/{profile.removesuffix('+me')}"
    if not size and not name:
        return None
    on = f"{product}/{profile}" if profile else product
    source = f"capacity memory={capacity['memory']}" if size else f"productName={product}"
    return Candidate(gpu=name, memory_bytes=size, on=on, labels=(("productName", product),) if product else (), memory_source=source)


def _product(product: str, name: str, profile: str) -> Candidate:
    gpu, on = (f"{name}/{profile.removesuffix('+me')}", f"{product}/{profile}") if profile else (name, product)
    return Candidate(gpu=gpu, on=on, labels=(("productName", product),), memory_source=f"productName={product}")


def _at_least(wanted: Wanted) -> Iterator[Candidate]:
    least = max((each.least for each in wanted.conditions if each.name == "memory"), default=0)
    exact = any(each.name == "memory" and each.most == each.least for each in wanted.conditions)
    if least:
        said = f"capacity memory {'=' if exact else '>='} {gibibytes(least)}"
        yield Candidate(memory_bytes=least, is_least=not exact, memory_source=said)
