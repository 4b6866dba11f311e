"""The cards that the service knows by name, for those of which a pod gets a part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import grpc

from peakgate.hooks.asking import Service
from peakgate.v1.catalog_service_pb2 import ListGpusRequest
from peakgate.v1.catalog_service_pb2_grpc import CatalogServiceStub

if TYPE_CHECKING:  # types of the generated stubs, absent at run time
    from peakgate.v1.catalog_service_pb2_grpc import CatalogServiceAsyncStub

SECONDS = 1.0


async def catalogue_of(*services: Service | None) -> Mapping[str, int]:
    """Total bytes by name, from the first that answers; empty while nobody does."""
    for service in services:
        if service is not None and (found := await _asked(service)):
            return found
    return {}


async def _asked(service: Service) -> Mapping[str, int]:
    stub: CatalogServiceAsyncStub = CatalogServiceStub(service.channel)
    try:
        found = await stub.ListGpus(ListGpusRequest(), timeout=SECONDS)
    except grpc.RpcError:
        return {}
    return {each.name: each.total_bytes for each in found.gpus}
