"""A model of a site's own as a row of the catalogue: its sizes must make sense, and give the parameter count that is stated."""

from __future__ import annotations

from peakgate.memory.catalog.models import ModelSpec
from peakgate.memory.extra_sizes import correction_bytes
from peakgate.memory.families import FAMILIES
from peakgate.memory.job import Job, Model
from peakgate.memory.model import describe, transformer_of
from peakgate.memory.predict import predict
from peakgate.memory.prediction import FieldError, JobError

_FP32_BYTES = 4


def site_model(name: str, model: Model, *, aliases: tuple[str, ...], parameters: int | None, source: str) -> ModelSpec:
    """The row of a model that is stated by `transformer` or `hf_config`.

    Raises JobError that names every field that is wrong: sizes that contradict each other or are missing, and `parameters` when the
    sizes give another count. Of a block that another family stands for the count is taken as stated.
    """
    counted = predict(Job(model=model)).parameters  # raises JobError
    described = describe(model)
    transformer, extras = transformer_of(model)
    if described.architecture is None or transformer is None:
        raise _refused("model", "; ".join(described.undecided) or "needs a transformer or an hf_config")
    family = FAMILIES.get(described.architecture.block)
    counted += correction_bytes(transformer, family) // _FP32_BYTES if family is not None else 0
    if parameters not in (None, counted) and not described.architecture.stand_in:
        raise _refused("parameters", f"is {parameters:,}, and the sizes give {counted:,}: correct one of them")
    return ModelSpec(
        name=name,
        aliases=aliases,
        transformer=transformer,
        extras=extras,
        published_parameters=counted if parameters is None else parameters,
        source=source,
    )


def _refused(field: str, description: str) -> JobError:
    return JobError("FIELD_INVALID", (FieldError(field=field, description=description),))
