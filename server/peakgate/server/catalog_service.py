"""CatalogService: the names that a job document may use, the defaults, and the document's schema."""

# ruff: noqa: ARG002, N802 - gRPC names the methods and their arguments
from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import grpc

from peakgate.server.schema import job_schema
from peakgate.v1 import catalog_service_pb2 as pb
from peakgate.v1.catalog_service_pb2_grpc import CatalogServiceServicer
from peakgate.v1.training_job_pb2 import Transformer

if TYPE_CHECKING:
    from peakgate.memory.job import Transformer as Dimensions

Context = grpc.aio.ServicerContext[object, object]


class CatalogService(CatalogServiceServicer):
    """Reads the memory model's tables."""

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        """Models by name."""
        from peakgate.memory.catalog.models import all_models

        return pb.ListModelsResponse(
            models=[
                pb.CatalogModel(
                    name=spec.name,
                    aliases=spec.aliases,
                    parameters=spec.published_parameters,
                    block=spec.transformer.block,
                    source=spec.source,
                    dimensions=_dimensions(spec.transformer),
                )
                for _, spec in sorted(all_models().items())
            ]
        )

    async def ListGpus(self, request: pb.ListGpusRequest, context: Context) -> pb.ListGpusResponse:
        """GPUs by name."""
        from peakgate.memory.catalog.gpus import GPUS

        return pb.ListGpusResponse(
            gpus=[
                pb.CatalogGpu(
                    name=spec.name,
                    total_bytes=spec.total_bytes,
                    reserved_bytes=spec.reserved_bytes,
                    compute_capability=".".join(str(part) for part in spec.compute_capability),
                    source=spec.source,
                )
                for _, spec in sorted(GPUS.items())
            ]
        )

    async def ListDefaults(self, request: pb.ListDefaultsRequest, context: Context) -> pb.ListDefaultsResponse:
        """Defaults by framework and field: today's, and those of stated versions."""
        from peakgate.memory.defaults import DEFAULTS
        from peakgate.memory.earlier import EARLIER

        rows = sorted((*DEFAULTS, *(row.named for row in EARLIER)), key=lambda row: (row.framework, row.field))
        return pb.ListDefaultsResponse(
            defaults=[pb.CatalogDefault(framework=row.framework, field=row.field, value=row.value, source=row.source) for row in rows]
        )

    async def GetJobSchema(self, request: pb.GetJobSchemaRequest, context: Context) -> pb.GetJobSchemaResponse:
        """JSON Schema of the job document."""
        return pb.GetJobSchemaResponse(json=json.dumps(job_schema(), indent=2))


def _dimensions(model: Dimensions) -> Transformer:
    """As a job document states them: what is not said stays away."""
    return Transformer(**asdict(model))
