"""The hook under each Lua that a plugin is built with."""

from __future__ import annotations

import pytest
from tests.unit.hooks.slurm.lua import VERSIONS, need_luasocket


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """A version of Lua whose interpreter and LuaSocket are there."""
    need_luasocket(request.param)
    return str(request.param)
