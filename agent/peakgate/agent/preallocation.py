"""What a process's environment says about taking most of the card at its start. The user can set it to anything: only a hint.

JAX: docs.jax.dev, "GPU memory allocation". TensorFlow: tensorflow.org, "Use a GPU", limiting GPU memory growth.
"""

from __future__ import annotations

from collections.abc import Mapping

HINTS = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": frozenset({"true", "1"}),
    "TF_FORCE_GPU_ALLOW_GROWTH": frozenset({"false", "0"}),
}
"""The values by which a variable says that memory is taken in advance. A variable that is not set says nothing: both frameworks take it
then, but any other program has them unset too."""


def says_it_preallocates(environment: Mapping[str, str]) -> bool:
    """Whether one of the variables says so."""
    return any(environment.get(name, "").lower() in values for name, values in HINTS.items())
