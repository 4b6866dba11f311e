"""An empty unary echo on grpc.aio: what a call costs when nothing is done. `python -m tests.bench.echo PORT`."""

from __future__ import annotations

import asyncio
import signal
import sys

import grpc

METHOD = "/peakgate.bench.Echo/Empty"


async def empty(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    """Answers nothing with nothing."""
    return b""


async def serve(port: int) -> None:
    """Serves until SIGTERM."""
    _, service, method = METHOD.split("/")
    server = grpc.aio.server()
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(empty)})])
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(grace=1)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
