"""A node whose pods are processes of this machine: what a scheduler, a kubelet and the controller of EndpointSlices do for them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.integration.kubernetes.real_api_server import MERGE_PATCH, ApiServer
from tests.integration.kubernetes.real_pods import RunningPod, own_address

NODE = "here"
SELECTED = "labelSelector=app.kubernetes.io%2Fname%3Dpeakgate"
LOOK_SECONDS = 0.3


class Node:
    """Takes every pod of peakgate's; other pods wait as they would for a GPU that is not there."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self._api = api
        self._folder = folder
        self._address = own_address()
        self._stopped = threading.Event()
        self._told: dict[str, object] = {}
        self._left: dict[str, list[dict[int, int]]] = {}
        self.pods: dict[str, RunningPod] = {}
        """By the pod's uid."""
        self.paused: set[str] = set()
        """Names of components whose dead processes are left dead."""

    def run(self) -> None:
        """Until it is stopped."""
        while not self._stopped.wait(LOOK_SECONDS):
            with contextlib.suppress(RuntimeError):  # an object was changed or removed meanwhile
                found = self._api.must("GET", f"/api/v1/pods?{SELECTED}")["items"]
                self._forget({pod["metadata"]["uid"] for pod in found})
                for pod in found:
                    self._keep(pod)
                self._slices()

    def stop(self) -> None:
        """Ends all pods."""
        self._stopped.set()
        for each in self.pods.values():
            each.stop()

    def of(self, component: str) -> list[RunningPod]:
        """The pods of a component, those that were made first before the others."""
        found = [each for each in self.pods.values() if _component(each.pod) == component]
        return sorted(found, key=lambda each: str(each.pod["metadata"]["name"]))

    def _forget(self, known: set[str]) -> None:
        for uid in [uid for uid in self.pods if uid not in known]:
            self._end(uid)

    def _end(self, uid: str) -> None:
        """The next pod of its component gets its ports: a Service keeps its address."""
        kept = self.pods.pop(uid)
        kept.stop()
        self._left.setdefault(_component(kept.pod), []).append(kept.ports)

    def _begin(self, pod: Mapping[str, Any]) -> RunningPod:
        left = self._left.get(_component(pod), [])
        folder = self._folder / pod["metadata"]["name"]
        return RunningPod(self._api, pod, folder, self._address, self._behind, ports=left.pop() if left else {})

    def _keep(self, pod: Mapping[str, Any]) -> None:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        uid = meta["uid"]
        if "deletionTimestamp" in meta:
            if uid in self.pods:
                self._end(uid)
            self._api.call("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
            return
        if "nodeName" not in pod["spec"]:
            target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
            self._api.must("POST", f"{path}/binding", {"metadata": {"name": meta["name"]}, "target": target})
        if uid not in self.pods:
            self.pods[uid] = self._begin(pod)
        self._tend(self.pods[uid], path)

    def _tend(self, kept: RunningPod, path: str) -> None:
        if kept.process is None:
            kept.start()
        elif kept.process.poll() is not None and _component(kept.pod) not in self.paused:
            kept.restarts += 1
            kept.start()
        is_running = kept.process is not None and kept.process.poll() is None
        told = (is_running, is_running and kept.is_ready(), kept.restarts)
        uid = kept.pod["metadata"]["uid"]
        if self._told.get(uid) != told:
            self._api.must("PATCH", f"{path}/status", {"status": self._status(kept, *told)}, content_type=MERGE_PATCH)
            self._told[uid] = told

    def _status(self, kept: RunningPod, is_running: bool, is_ready: bool, restarts: int) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        words = {"PodScheduled": True, "Initialized": True, "ContainersReady": is_ready, "Ready": is_ready}
        container = kept.container
        state = {"running": {"startedAt": now}} if is_running else {"waiting": {"reason": "ContainerCreating"}}
        return {
            "phase": "Running" if is_running else "Pending",
            "hostIP": self._address,
            "podIP": self._address,
            "podIPs": [{"ip": self._address}],
            "startTime": now,
            "conditions": [{"type": name, "status": str(value), "lastTransitionTime": now} for name, value in words.items()],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": is_ready,
                    "restartCount": restarts,
                    "started": is_running,
                    "state": state,
                }
            ],
        }

    def _chosen(self, service: Mapping[str, Any]) -> list[RunningPod]:
        wanted = service["spec"].get("selector", {}).items()
        namespace = service["metadata"]["namespace"]
        pods = (each for each in self.pods.values() if each.pod["metadata"]["namespace"] == namespace)
        return [each for each in pods if wanted <= each.pod["metadata"]["labels"].items()]

    def _behind(self, name: str, namespace: str, port: int) -> str:
        status, service, _ = self._api.call("GET", f"/api/v1/namespaces/{namespace}/services/{name}")
        pods = self._chosen(service) if status == 200 else []
        if not pods:
            return ""
        (target,) = (each["targetPort"] for each in service["spec"]["ports"] if each["port"] == port)
        return f"{self._address}:{pods[0].port(target)}"

    def _slices(self) -> None:
        """One for each pod behind a Service, since each pod has other ports; with the Service they go."""
        for service in self._api.must("GET", f"/api/v1/services?{SELECTED}")["items"]:
            for kept in self._chosen(service):
                self._slice(service, kept)

    def _slice(self, service: Mapping[str, Any], kept: RunningPod) -> None:
        meta = service["metadata"]
        is_ready = bool(self._told.get(kept.pod["metadata"]["uid"], (False, False))[1])  # type: ignore[index]
        name = f"{meta['name']}-{kept.pod['metadata']['name']}"
        if self._told.get(name) == is_ready:
            return
        ports = [{"name": each["name"], "port": kept.port(each["targetPort"]), "protocol": "TCP"} for each in service["spec"]["ports"]]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": kept.pod["metadata"]["name"], "uid": kept.pod["metadata"]["uid"]}
        body = {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": meta["name"]}, "ownerReferences": [owner]},
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": [{"addresses": [self._address], "conditions": {"ready": is_ready}}],
        }
        base = f"/apis/discovery.k8s.io/v1/namespaces/{meta['namespace']}/endpointslices"
        if self._api.call("PATCH", f"{base}/{name}", body, content_type=MERGE_PATCH)[0] == 404:
            self._api.must("POST", base, body)
        self._told[name] = is_ready


def _component(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["app.kubernetes.io/component"])


@contextlib.contextmanager
def a_node(api: ApiServer, folder: Path) -> Iterator[Node]:
    """Works until the block ends."""
    api.must("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    node = Node(api, folder)
    thread = threading.Thread(target=node.run, daemon=True)
    thread.start()
    try:
        yield node
    finally:
        node.stop()
        thread.join(60)
        node.stop()
