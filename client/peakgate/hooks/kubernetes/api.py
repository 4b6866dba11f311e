"""Calls of the API server by the official client (extra [kubernetes]): JSON both ways, and every fault an ApiError."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError

from peakgate.hooks.kubernetes.api_errors import ApiError
from peakgate.hooks.kubernetes.objects import Object, mappings_at, text_at

SECONDS = 10.0
PAGE = 500
"""Objects of a list at once, as kubectl has it."""

JSON, JSON_PATCH, MERGE_PATCH = "application/json", "application/json-patch+json", "application/merge-patch+json"


def connected(context: str | None = None) -> ApiClient:
    """A client with the pod's own account, else of the user's kubeconfig. Raises ApiError."""
    configuration = Configuration()
    try:
        if context is None:
            try:
                load_incluster_config(client_configuration=configuration)
                return ApiClient(configuration)
            except ConfigException:
                pass
        load_kube_config(context=context, client_configuration=configuration)
    except (ConfigException, OSError, TypeError) as error:  # TypeError: of a kubeconfig that is empty
        raise ApiError(f"no API server is named: neither a pod's account nor a kubeconfig ({error})") from error
    return ApiClient(configuration)


def call(client: ApiClient, method: str, path: str, body: object = None, *, content_type: str = JSON, seconds: float = SECONDS) -> Any:
    """What it answers. Raises ApiError."""
    headers = {"Accept": JSON, "Content-Type": content_type}
    with raised():
        request = client.param_serialize(method, path, header_params=headers, body=body, auth_settings=["BearerToken"])
        response = client.call_api(*request, _request_timeout=seconds)
        text = response.read()
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            raise ApiException(status=response.status, reason=response.reason)
        return json.loads(text)


def listed(client: ApiClient, path: str) -> tuple[list[Object], str]:
    """All objects of a list, some hundred at a time, and the list's version. Raises ApiError."""
    found: list[Object] = []
    following = ""
    while True:
        page = call(client, "GET", f"{path}?limit={PAGE}" + (f"&continue={quote(following)}" if following else ""))
        found += mappings_at(page, "items")
        following = text_at(page, "metadata", "continue")
        if not following:
            return found, text_at(page, "metadata", "resourceVersion")


@contextmanager
def raised() -> Iterator[None]:
    """Whatever the client raises, as an ApiError."""
    try:
        yield
    except ApiException as error:
        raise ApiError(f"the API server answers {error.status} {error.reason}", error.status or 0) from error
    except (KeyError, TypeError, AttributeError) as error:  # the client's own, of an answer without the members that it wants
        raise ApiError(f"the API server's answer cannot be read: {type(error).__name__} {error}") from error
    except (HTTPError, OSError, ValueError) as error:
        raise ApiError(f"the API server does not answer: {type(error).__name__}") from error
