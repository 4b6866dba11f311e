"""One clear line when a part of the program was not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from peakgate.client.errors import InputError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Imports that the extra `name` brings. Raises InputError with the command that installs it."""
    try:
        yield
    except ImportError as error:
        raise InputError(f"{error.name or 'a package'} is missing: pip install 'peakgate[{name}]'", reason="PACKAGE_MISSING") from error
