"""What the API server answers instead of an object."""

from __future__ import annotations

GONE, CONFLICT, NOT_FOUND = 410, 409, 404


class ApiError(Exception):
    """`status`: of HTTP; 0 where the server could not be reached."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
