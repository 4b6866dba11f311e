"""The kubelet's PodResources API, version v1, over its unix socket.

In a pod mount the socket's *folder*, read-only: the kubelet makes a new socket at every start.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import grpc
from google.protobuf.message import Message

from peakgate.agent.errors import KubeletError
from peakgate.kubelet.v1 import pod_resources_pb2 as pb

SERVICE = "/v1.PodResourcesLister"
"""Package and service of the public API (k8s.io/kubelet, pkg/apis/podresources/v1/api.proto)."""
TIMEOUT_SECONDS = 5.0
"""The kubelet answers from memory; the watch over pods asks again in half a minute."""
MAX_MESSAGE_BYTES = 16 << 20
"""defaultPodResourcesMaxMsgSize in the kubelet's pkg/kubelet/kubelet.go."""

RECONNECT_MILLISECONDS = 10_000
"""gRPC's own limit is two minutes, for which a kubelet that is back would not be asked."""

Answer = TypeVar("Answer", bound=Message)


class Kubelet:
    """Asks the kubelet of this node. Every method raises KubeletError and nothing else; `close` ends it."""

    def __init__(self, *, socket: Path, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        options = [("grpc.max_receive_message_length", MAX_MESSAGE_BYTES), ("grpc.max_reconnect_backoff_ms", RECONNECT_MILLISECONDS)]
        self._channel = grpc.insecure_channel(f"unix:{socket}", options=options)

    def pods(self) -> pb.ListPodResourcesResponse:
        """What the containers of all pods hold."""
        return self._call("List", pb.ListPodResourcesRequest(), pb.ListPodResourcesResponse.FromString)

    def pod(self, *, namespace: str, name: str) -> pb.PodResources:
        """What the containers of one pod hold."""
        request = pb.GetPodResourcesRequest(pod_name=name, pod_namespace=namespace)
        return self._call("Get", request, pb.GetPodResourcesResponse.FromString).pod_resources

    def allocatable(self) -> pb.AllocatableResourcesResponse:
        """The devices that device plugins offer, held or not."""
        return self._call("GetAllocatableResources", pb.AllocatableResourcesRequest(), pb.AllocatableResourcesResponse.FromString)

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def _call(self, method: str, request: Message, parse: Callable[[bytes], Answer]) -> Answer:
        call: grpc.UnaryUnaryMultiCallable[Message, Answer] = self._channel.unary_unary(
            f"{SERVICE}/{method}", request_serializer=lambda message: message.SerializeToString(), response_deserializer=parse
        )
        try:
            return call(request, timeout=self._timeout_seconds)
        except grpc.RpcError as error:
            code = cast("grpc.Call", error).code()
            raise KubeletError(method=method, code=code.name, detail=cast("grpc.Call", error).details()) from error
        except ValueError as error:
            raise KubeletError(method=method, code="CANCELLED", detail=str(error)) from error  # the channel was closed
