"""A part that was not installed is one clear line."""

from __future__ import annotations

import pytest

from peakgate.client.errors import InputError
from peakgate.client.extras import extra


def test_the_error_names_the_package_and_the_command() -> None:
    """An import that fails inside says what is missing and what installs it, and is bad usage."""
    with pytest.raises(InputError, match=r"no_such_package is missing: pip install 'peakgate\[agent\]'") as raised, extra("agent"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401  # that it is missing is the test
    assert raised.value.exit_status == 2


def test_what_is_installed_is_imported() -> None:
    """Nothing stands in the way of a package that is there."""
    with extra("client"):
        import typer
    assert typer.__name__ == "typer"
