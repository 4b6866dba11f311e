"""How long a reader may take over anything."""

from __future__ import annotations

SECONDS = 3.0
"""Of CPU time: three times the second that is aimed at, since a busy machine runs slower."""
