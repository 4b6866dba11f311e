"""The kubelet's PodResources API as a real gRPC server on a unix socket.

Its messages are put together here from the public API's names, numbers and types (k8s.io/kubelet, pkg/apis/podresources/v1/api.proto at
63b3249), all fields of it, and not from the agent's own .proto: two independent readings of one document must understand each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

FIELDS: dict[str, list[tuple[str, int, str]]] = {
    "AllocatableResourcesRequest": [],
    "AllocatableResourcesResponse": [("devices", 1, "[ContainerDevices]"), ("cpu_ids", 2, "[int64]"), ("memory", 3, "[ContainerMemory]")],
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": [("pod_resources", 1, "[PodResources]")],
    "PodResources": [
        ("name", 1, "string"),
        ("namespace", 2, "string"),
        ("containers", 3, "[ContainerResources]"),
        ("cpu_ids", 4, "[int64]"),
        ("memory", 5, "[ContainerMemory]"),
    ],
    "ContainerResources": [
        ("name", 1, "string"),
        ("devices", 2, "[ContainerDevices]"),
        ("cpu_ids", 3, "[int64]"),
        ("memory", 4, "[ContainerMemory]"),
        ("dynamic_resources", 5, "[DynamicResource]"),
    ],
    "ContainerMemory": [("memory_type", 1, "string"), ("size", 2, "uint64"), ("topology", 3, "TopologyInfo")],
    "ContainerDevices": [("resource_name", 1, "string"), ("device_ids", 2, "[string]"), ("topology", 3, "TopologyInfo")],
    "TopologyInfo": [("nodes", 1, "[NUMANode]")],
    "NUMANode": [("ID", 1, "int64")],
    "DynamicResource": [("claim_name", 2, "string"), ("claim_namespace", 3, "string"), ("claim_resources", 4, "[ClaimResource]")],
    "ClaimResource": [
        ("cdi_devices", 1, "[CDIDevice]"),
        ("driver_name", 2, "string"),
        ("pool_name", 3, "string"),
        ("device_name", 4, "string"),
        ("share_id", 5, "string"),
    ],
    "CDIDevice": [("name", 1, "string")],
    "GetPodResourcesRequest": [("pod_name", 1, "string"), ("pod_namespace", 2, "string")],
    "GetPodResourcesResponse": [("pod_resources", 1, "PodResources")],
}
CALLS = {
    "List": ("ListPodResourcesRequest", "ListPodResourcesResponse"),
    "Get": ("GetPodResourcesRequest", "GetPodResourcesResponse"),
    "GetAllocatableResources": ("AllocatableResourcesRequest", "AllocatableResourcesResponse"),
}
Field = descriptor_pb2.FieldDescriptorProto
TYPES = {"string": Field.TYPE_STRING, "int64": Field.TYPE_INT64, "uint64": Field.TYPE_UINT64}
Json = Mapping[str, object]


def _field(name: str, number: int, kind: str) -> descriptor_pb2.FieldDescriptorProto:
    label = Field.LABEL_REPEATED if kind.startswith("[") else Field.LABEL_OPTIONAL
    kind = kind.strip("[]")
    if kind in TYPES:
        return Field(name=name, number=number, label=label, type=TYPES[kind])
    return Field(name=name, number=number, label=label, type=Field.TYPE_MESSAGE, type_name=f".v1.{kind}")


def _classes() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, fields in FIELDS.items():
        file.message_type.add(name=name).field.extend(_field(*field) for field in fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}")) for name in FIELDS}


CLASSES = _classes()


class KubeletService:
    """Answers with what a test has put into `pods` and `devices`; a code in `failure` is answered to every call."""

    def __init__(self) -> None:
        self.pods: list[Json] = []
        self.devices: list[Json] = []
        self.failure: grpc.StatusCode | None = None
        self.calls: list[str] = []

    def answer(self, call: str, request: Message, context: grpc.ServicerContext) -> Message:
        """One call."""
        self.calls.append(call)
        if self.failure:
            context.abort(self.failure, "as the test wants it")
        response = CLASSES[CALLS[call][1]]
        if call == "List":
            return response(pod_resources=self.pods)
        if call == "GetAllocatableResources":
            return response(devices=self.devices, cpu_ids=[0, 1])
        wanted = (getattr(request, "pod_namespace", ""), getattr(request, "pod_name", ""))
        for pod in self.pods:
            if (pod["namespace"], pod["name"]) == wanted:
                return response(pod_resources=pod)
        context.abort(grpc.StatusCode.NOT_FOUND, "no such pod")
        raise AssertionError("abort raises")


@contextmanager
def serving(service: KubeletService, socket: Path) -> Iterator[None]:
    """A kubelet on the socket; the socket goes away with it, as a kubelet's does."""
    handlers: dict[str, grpc.RpcMethodHandler[Message, Message]] = {
        call: grpc.unary_unary_rpc_method_handler(
            lambda request, context, call=call: service.answer(call, request, context),
            request_deserializer=CLASSES[request].FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        for call, (request, _) in CALLS.items()
    }
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()
        socket.unlink(missing_ok=True)


def a_pod(name: str, *containers: Json, namespace: str = "research") -> Json:
    """A pod as the kubelet lists it, with a CPU of its own, which the agent has no field for."""
    return {"name": name, "namespace": namespace, "containers": list(containers), "cpu_ids": [3]}


def a_container(name: str = "trainer", *, claims: list[tuple[str, str, str]] | None = None, **devices: list[str]) -> Json:
    """A container with these device ids by resource (`gpu` is nvidia.com/gpu) and these claimed devices: driver, pool, name."""
    claimed = [{"driver_name": driver, "pool_name": pool, "device_name": device} for driver, pool, device in claims or []]
    return {
        "name": name,
        "devices": [
            {"resource_name": f"nvidia.com/{resource.replace('_', '-')}", "device_ids": ids, "topology": {"nodes": [{"ID": 0}]}}
            for resource, ids in devices.items()
        ],
        "dynamic_resources": [{"claim_name": "one-gpu", "claim_namespace": "research", "claim_resources": claimed}] if claimed else [],
    }
