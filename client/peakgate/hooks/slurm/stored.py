"""Stored predictions by their names, each asked for once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from peakgate.client.errors import ServiceError

if TYPE_CHECKING:
    from peakgate.client.connect import Client
    from peakgate.hooks.slurm.report import Look
    from peakgate.v1.prediction_service_pb2 import PredictionSummary


def stored_lines(client: Client) -> Look:
    """What looks a prediction up; one that was deleted, or is another service's, is None. Raises ServiceError when nobody answers."""

    @cache
    def look(name: str) -> PredictionSummary | None:
        try:
            return client.get_prediction(name).stored
        except ServiceError as error:
            if error.code in ("NOT_FOUND", "INVALID_ARGUMENT"):
                return None
            raise

    return look
