"""Every rule about rendered objects, in one list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.integration.kubernetes import rules_admission, rules_safety, rules_wiring
from tests.integration.kubernetes.charts import Manifest

Rule = Callable[[Sequence[Manifest]], Iterator[str]]
RULES: tuple[Rule, ...] = (
    rules_wiring.selectors_match,
    rules_wiring.budgets_let_nodes_drain,
    rules_wiring.ports_are_named,
    rules_wiring.policies_name_ports,
    rules_wiring.probes_reach_ports,
    rules_wiring.monitors_find_endpoints,
    rules_wiring.names_are_unique_and_placed,
    rules_safety.images_have_no_host,
    rules_safety.pods_are_restricted,
    rules_safety.volumes_are_mounted,
    rules_safety.accounts_are_bound,
    rules_safety.roles_are_narrow,
    rules_safety.namespaces_admit_the_pods,
    rules_admission.webhooks_are_served,
    rules_admission.webhooks_cannot_block,
    rules_admission.certificates_are_for_the_service,
    rules_admission.servers_are_there,
    rules_admission.arguments_exist,
)


def faults(objects: Sequence[Manifest]) -> list[str]:
    """What any rule says."""
    return [fault for rule in RULES for fault in rule(objects)]
