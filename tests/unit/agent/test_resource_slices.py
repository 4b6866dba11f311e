"""Device names of dynamic resource allocation, against a real HTTP server with the API server's answers."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GPU, OTHER_GPU

from peakgate.agent.cluster_api import ClusterApi, own_cluster
from peakgate.agent.errors import ClusterApiError
from peakgate.agent.resource_slices import DRIVER, MAX_AGE_SECONDS, MAX_PAGES, RETRY_SECONDS, ResourceSlices

NODE = "node-7"
MIG = "MIG-265a219d-a49f-578a-825d-222c72699c16"
Json = dict[str, object]


def a_device(name: str, uuid: str | None, *, attribute: str = "uuid", version: str = "v1") -> Json:
    """A device as this version of the API shows it; attributes as NVIDIA's driver publishes them."""
    attributes: Json = {"type": {"string": "gpu"}, "driverVersion": {"version": "580.126.9"}, "index": {"int": 0}}
    if uuid is not None:
        attributes[attribute] = {"string": uuid}
    inner: Json = {"attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
    return {"name": name, "basic": inner} if version == "v1beta1" else {"name": name, **inner}


def a_slice(*devices: Json, pool: str = NODE, generation: int = 1, driver: str = DRIVER) -> Json:
    """A ResourceSlice."""
    spec = {"driver": driver, "nodeName": NODE, "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1}}
    return {"metadata": {"name": f"{NODE}-{driver}-x"}, "spec": spec | {"devices": list(devices)}}


class ApiServer(ThreadingHTTPServer):
    """Answers lists of slices in pages; `status` other than 200 is answered to everything."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.slices: dict[str, list[Json]] = {}
        self.page_items = 100
        self.status = 200
        self.body: bytes | None = None
        self.requests: list[tuple[str, dict[str, list[str]], str | None]] = []

    def answer(self, version: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        """The page of the list that the query asks for."""
        if self.status != 200 or self.body is not None:
            return self.status, self.body or b"{}"
        if version not in self.slices:
            return 404, b"404 page not found"
        start = int(query.get("continue", ["0"])[0])
        items = self.slices[version][start : start + self.page_items]
        more = start + self.page_items < len(self.slices[version])
        metadata = {"resourceVersion": "7"} | ({"continue": str(start + self.page_items)} if more else {})
        return 200, json.dumps({"kind": "ResourceSliceList", "metadata": metadata, "items": items}).encode()


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def do_GET(self) -> None:
        """One read."""
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        self.server.requests.append((parts.path, query, self.headers["Authorization"]))
        status, body = self.server.answer(parts.path.split("/")[3], query)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Nothing."""


@contextmanager
def running(server: ApiServer) -> Iterator[ApiServer]:
    """The server in its thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server without TLS."""
    with running(ApiServer()) as server:
        yield server


class Clock:
    """Seconds that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def plain(server: ApiServer) -> ClusterApi:
    """The client of the server."""
    return ClusterApi(connect=lambda: http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=5), token=lambda: "secret")


def slices_of(server: ApiServer, clock: Clock | None = None) -> ResourceSlices:
    """What the agent knows of its node's devices."""
    return ResourceSlices(api=plain(server), node=NODE, clock=clock or Clock())


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_device_has_the_uuid_of_its_attribute(server: ApiServer, version: str) -> None:
    """GPUs and fixed MIG instances, in both versions of the API; another driver's device is none of ours."""
    server.slices[version] = [a_slice(a_device("gpu-0", GPU, version=version), a_device("gpu-1-mig-9-0-1", MIG, version=version))]
    slices = slices_of(server)
    assert slices.uuid_of(DRIVER, NODE, "gpu-0") == GPU
    assert slices.uuid_of(DRIVER, NODE, "gpu-1-mig-9-0-1") == MIG
    assert slices.uuid_of("compute-domain.nvidia.com", NODE, "gpu-0") == ""
    assert slices.uuid_of(DRIVER, "another-pool", "gpu-0") == ""


def test_the_list_is_asked_for_this_node_with_the_accounts_token(server: ApiServer) -> None:
    """A cluster of ten thousand nodes is not read as a whole; the answer is kept."""
    server.slices["v1"] = [a_slice(a_device("gpu-0", GPU))]
    slices = slices_of(server)
    for _ in range(3):
        slices.uuid_of(DRIVER, NODE, "gpu-0")
    [(path, query, authorization)] = server.requests
    assert path == "/apis/resource.k8s.io/v1/resourceslices"
    assert query["fieldSelector"] == [f"spec.driver={DRIVER},spec.nodeName={NODE}"]
    assert authorization == "Bearer secret"


def test_a_list_in_pages_is_read_to_its_end(server: ApiServer) -> None:
    """Devices of every page are known."""
    server.page_items = 1
    server.slices["v1"] = [a_slice(a_device(f"gpu-{number}", f"{GPU[:-1]}{number}"), pool=f"pool-{number}") for number in range(3)]
    slices = slices_of(server)
    assert [slices.uuid_of(DRIVER, f"pool-{number}", f"gpu-{number}") for number in range(3)] == [f"{GPU[:-1]}{n}" for n in range(3)]


def test_a_list_without_an_end_is_no_answer(server: ApiServer) -> None:
    """Half a list may lack the newest generation of a pool: nothing of it is used."""
    server.page_items = 1
    server.slices["v1"] = [a_slice(a_device("gpu-0", GPU))] * (MAX_PAGES + 1)
    with capture_logs() as logs:
        assert slices_of(server).uuid_of(DRIVER, NODE, "gpu-0") == ""
    assert "no end" in logs[0]["problem"]


@pytest.mark.parametrize("order", [1, -1])
def test_only_the_newest_generation_of_a_pool_counts(server: ApiServer, order: int) -> None:
    """While the driver updates its pool, old slices lie beside the new ones, in any order."""
    old, new = a_slice(a_device("gpu-0", GPU), a_device("gpu-9", GPU)), a_slice(a_device("gpu-0", OTHER_GPU), generation=2)
    server.slices["v1"] = [old, new][::order]
    slices = slices_of(server)
    assert (slices.uuid_of(DRIVER, NODE, "gpu-0"), slices.uuid_of(DRIVER, NODE, "gpu-9")) == (OTHER_GPU, "")


@pytest.mark.parametrize(
    ("device", "want"),
    [
        (a_device("gpu-0", GPU, attribute=f"{DRIVER}/uuid"), GPU),
        (a_device("gpu-0", None), ""),
        (a_device("gpu-0", "GPU-of-nobody"), ""),
        (a_device("gpu-0", GPU, attribute="parentUUID"), ""),
        ({"name": "gpu-0"}, ""),
        ({"name": "gpu-0", "attributes": []}, ""),
        ({"name": "gpu-0", "attributes": {"uuid": GPU}}, ""),
        ({"name": ["gpu-0"], "attributes": {"uuid": {"string": GPU}}}, ""),
    ],
)
def test_a_device_without_a_good_uuid_is_unknown(server: ApiServer, device: Json, want: str) -> None:
    """An instance that is made on demand has no UUID before it is made; nonsense is not guessed at."""
    server.slices["v1"] = [a_slice(device)]
    assert slices_of(server).uuid_of(DRIVER, NODE, "gpu-0") == want


@pytest.mark.parametrize(
    "body", [b"no json", b"[]", b'{"items": 7}', b'{"items": [7, {"spec": 7}, {"spec": {"pool": [], "devices": {}}}]}']
)
def test_an_answer_that_is_none_makes_devices_unknown(server: ApiServer, body: bytes) -> None:
    """Whatever the API server sends, nothing is raised and nothing is believed."""
    server.body = body
    assert slices_of(server).uuid_of(DRIVER, NODE, "gpu-0") == ""


def test_a_new_device_is_asked_for_soon_and_not_every_second(server: ApiServer) -> None:
    """The driver publishes a device after the agent's first look; until then one question a minute."""
    clock = Clock()
    server.slices["v1"] = []
    slices = slices_of(server, clock)
    assert [slices.uuid_of(DRIVER, NODE, "gpu-0") for _ in range(5)] == [""] * 5
    assert len(server.requests) == 1
    server.slices["v1"] = [a_slice(a_device("gpu-0", GPU))]
    clock.now = RETRY_SECONDS
    assert slices.uuid_of(DRIVER, NODE, "gpu-0") == GPU


def test_old_knowledge_ends_when_it_cannot_be_renewed(server: ApiServer) -> None:
    """Ten minutes without the API server, and a name may mean another GPU: unknown, until it answers again."""
    clock = Clock()
    server.slices["v1"] = [a_slice(a_device("gpu-0", GPU))]
    slices = slices_of(server, clock)
    assert slices.uuid_of(DRIVER, NODE, "gpu-0") == GPU
    server.status = 503
    clock.now = MAX_AGE_SECONDS - 1
    assert slices.uuid_of(DRIVER, NODE, "gpu-0") == GPU
    clock.now = MAX_AGE_SECONDS
    with capture_logs() as logs:
        assert slices.uuid_of(DRIVER, NODE, "gpu-0") == ""
    assert "503" in logs[0]["problem"]
    server.status = 200
    clock.now += RETRY_SECONDS
    assert slices.uuid_of(DRIVER, NODE, "gpu-0") == GPU


def test_an_account_without_the_right_is_told_what_to_allow(server: ApiServer) -> None:
    """The role lacks resourceslices."""
    server.status = 403
    with pytest.raises(ClusterApiError) as caught:
        plain(server).get("/apis/resource.k8s.io/v1/resourceslices")
    assert "resourceslices" in caught.value.remedy


def test_a_server_that_is_not_there_is_an_error_of_ours(server: ApiServer) -> None:
    """A connection that is refused, and a cluster without the API."""
    nowhere = ClusterApi(connect=lambda: http.client.HTTPConnection("127.0.0.1", 1, timeout=5), token=lambda: "")
    with pytest.raises(ClusterApiError):
        nowhere.get("/x")
    with capture_logs() as logs:
        assert slices_of(server).uuid_of(DRIVER, NODE, "gpu-0") == ""
    assert "no resourceslices" in logs[0]["problem"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for 127.0.0.1 and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "ca.crt")]
    extensions = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", "req", "-x509", *options, *files, *extensions], check=True, capture_output=True)
    return folder


def test_a_pod_reads_its_own_cluster_over_tls(tmp_path: Path, certificate: Path) -> None:
    """Address from the environment, authority and token from the account's folder; a renewed token is used at once."""
    shutil.copy(certificate / "ca.crt", tmp_path)
    (tmp_path / "token").write_text("first\n")
    server = ApiServer()
    server.slices["v1"] = [a_slice(a_device("gpu-0", GPU))]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "ca.crt", certificate / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with running(server):
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.server_port)}
        api = own_cluster(environment=environment, folder=tmp_path)
        assert api
        assert ResourceSlices(api=api, node=NODE).uuid_of(DRIVER, NODE, "gpu-0") == GPU
        (tmp_path / "token").write_text("second")
        api.get("/apis/resource.k8s.io/v1/resourceslices")
    assert [authorization for _, _, authorization in server.requests] == ["Bearer first", "Bearer second"]


def test_outside_a_pod_there_is_no_cluster(tmp_path: Path) -> None:
    """Without the address or the account nothing is asked."""
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    assert own_cluster(environment=environment, folder=tmp_path) is None
    (tmp_path / "token").write_text("x")
    assert own_cluster(environment={}, folder=tmp_path) is None
    assert own_cluster(environment=environment, folder=tmp_path)
