"""What schemas miss about what a pod may do. Each rule yields one line for each fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.integration.kubernetes.charts import Manifest
from tests.integration.kubernetes.pods import Workload, label, namespace_of, of_kind, workloads

Objects = Sequence[Manifest]
# A reference's first part is a host when it has a dot or a port, or is localhost (distribution/reference, normalize.go, splitDockerDomain).
HOST = re.compile(r"^([^/]*[.:][^/]*|localhost)/")
PINNED = re.compile(r"(:(?!latest)[^/@]+)(@sha256:[0-9a-f]{64})?$")
# What the agent has beyond the policy "restricted" (docs/agent.md says why), and nothing else has.
AGENT = "agent"
LEVEL = "pod-security.kubernetes.io/enforce"
AGENT_FOLDERS = {"pod-resources", "run"}


def images_have_no_host(objects: Objects) -> Iterator[str]:
    """An image is named without a registry and never by a tag that moves."""
    for each in workloads(objects):
        for container in each.containers:
            if HOST.match(container["image"]) or not PINNED.search(container["image"]):
                yield f"{each.name}: image {container['image']}"


def pods_are_restricted(objects: Objects) -> Iterator[str]:
    """The pod security policy "restricted" and a root file system that nobody writes; the agent has its user, pids and folders besides."""
    for each in workloads(objects):
        pod, own = each.pod, each.pod.get("securityContext", {})
        if own.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{each.name}: seccomp"
        if each.component != AGENT and not (own.get("runAsNonRoot") and own.get("runAsUser", 0) > 0):
            yield f"{each.name}: may be root"
        if pod.get("hostNetwork") or pod.get("hostIPC") or (pod.get("hostPID") and each.component != AGENT):
            yield f"{each.name}: shares the node's namespaces"
        yield from _folders(each)
        for container in each.containers:
            yield from (f"{each.name}: {fault}" for fault in _container_faults(container, each.component))


def _container_faults(container: Mapping[str, Any], component: str) -> Iterator[str]:
    context = container.get("securityContext", {})
    wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}
    for name, value in wanted.items():
        if context.get(name) is not value:
            yield f"{name} is {context.get(name)}"
    capabilities = context.get("capabilities", {})
    if capabilities.get("drop") != ["ALL"] or not set(capabilities.get("add", [])) <= ({"SYS_PTRACE"} if component == AGENT else set()):
        yield f"capabilities {capabilities}"
    if context.get("privileged"):
        yield "privileged"
    resources = container.get("resources", {})
    if "memory" not in resources.get("limits", {}) or not {"cpu", "memory"} <= set(resources.get("requests", {})):
        yield f"resources {resources}"


def _folders(each: Workload) -> Iterator[str]:
    folders = {volume["name"] for volume in each.pod.get("volumes", []) if "hostPath" in volume}
    if folders - (AGENT_FOLDERS if each.component == AGENT else set()):
        yield f"{each.name}: folders of the node: {sorted(folders)}"
    for container in each.containers:
        for mount in container.get("volumeMounts", []):
            if mount["name"] == "pod-resources" and not mount.get("readOnly"):
                yield f"{each.name}: could write the kubelet's folder"


def volumes_are_mounted(objects: Objects) -> Iterator[str]:
    """Every mount has its volume and every volume its mount; claims exist."""
    claims = {(namespace_of(each), each["metadata"]["name"]) for each in of_kind(objects, "PersistentVolumeClaim")}
    maps = {(namespace_of(each), each["metadata"]["name"]) for each in of_kind(objects, "ConfigMap")}
    for each in workloads(objects):
        volumes = {volume["name"] for volume in each.pod.get("volumes", [])}
        mounts = {mount["name"] for container in each.containers for mount in container.get("volumeMounts", [])}
        if volumes != mounts:
            yield f"{each.name}: volumes {sorted(volumes)}, mounts {sorted(mounts)}"
        for volume in each.pod.get("volumes", []):
            if "configMap" in volume and (each.namespace, volume["configMap"]["name"]) not in maps:
                yield f"{each.name}: no ConfigMap {volume['configMap']['name']}"
            claim = volume.get("persistentVolumeClaim", {}).get("claimName")
            if claim and (each.namespace, claim) not in claims:
                yield f"{each.name}: no claim {claim}"


def accounts_are_bound(objects: Objects) -> Iterator[str]:
    """Bindings join accounts and roles that exist; a pod has a token exactly where its account is bound to a role."""
    accounts = {(namespace_of(each), each["metadata"]["name"]) for each in of_kind(objects, "ServiceAccount")}
    roles = {(each["kind"], each["metadata"]["name"]) for each in of_kind(objects, "ClusterRole", "Role")}
    bound = set()
    for each in of_kind(objects, "ClusterRoleBinding", "RoleBinding"):
        if (each["roleRef"]["kind"], each["roleRef"]["name"]) not in roles:
            yield f"{label(each)}: no role {each['roleRef']['name']}"
        for subject in each["subjects"]:
            bound.add((subject["namespace"], subject["name"]))
            if (subject["namespace"], subject["name"]) not in accounts:
                yield f"{label(each)}: no account {subject['name']} in {subject['namespace']}"
    for found in workloads(objects):
        account = (found.namespace, found.pod.get("serviceAccountName", "default"))
        if account[1] != "default" and account not in accounts:
            yield f"{found.name}: no account {account[1]}"
        if found.pod.get("automountServiceAccountToken", True) is not (account in bound):
            yield f"{found.name}: token {found.pod.get('automountServiceAccountToken')}, bound {account in bound}"


def roles_are_narrow(objects: Objects) -> Iterator[str]:
    """No wildcard, no verb that makes or takes away objects, Secrets and what admits objects only by name."""
    by_name = {"secrets", "leases", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"}
    for each in of_kind(objects, "ClusterRole", "Role"):
        for rule in each["rules"]:
            if "*" in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]:
                yield f"{label(each)}: a wildcard"
            if set(rule["verbs"]) & {"create", "delete", "deletecollection", "impersonate", "escalate", "bind"}:
                yield f"{label(each)}: {rule['verbs']} of {rule['resources']}"
            if by_name & set(rule["resources"]) and not rule.get("resourceNames"):
                yield f"{label(each)}: every one of {rule['resources']}"


def namespaces_admit_the_pods(objects: Objects) -> Iterator[str]:
    """Where the release makes a namespace, its policy lets the pods in that are meant for it."""
    levels = {
        each["metadata"]["name"]: each["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] for each in of_kind(objects, "Namespace")
    }
    for each in workloads(objects):
        want = "privileged" if each.component == AGENT else "restricted"
        if levels.get(each.namespace, want) != want:
            yield f"{each.name}: {each.namespace} enforces {levels[each.namespace]}"
