"""The servers of the product: nothing is done while nobody asks, and their end is not waited for."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from email.utils import parsedate_to_datetime

from uvicorn import Config

from deploy.bootstrap.home import ROOT
from deploy.config.serving import Server
from tests.support.virtual_loop import wakeups

PROGRAM = """
import socket, sys
from uvicorn import Config
from deploy.config.serving import Server
async def hello(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
door = socket.create_server(("127.0.0.1", 0))
print(door.getsockname()[1], flush=True)
Server(Config(hello, lifespan="off", log_level="warning")).run(sockets=[door])
"""


async def _nothing(scope: object, receive: object, send: object) -> None:
    raise AssertionError("nobody asks")


def test_a_server_without_requests_never_wakes() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as door:
        server = Server(Config(_nothing, lifespan="off", log_level="warning"))
        assert wakeups(server.serve(sockets=[door]), 3600.0) <= 2


def test_it_answers_with_the_time_of_the_answer_and_ends_when_asked_to() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(process.stdout.readline()), timeout=180)
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.read() == b"hello"
        assert abs(parsedate_to_datetime(answer.headers["date"]).timestamp() - time.time()) < 30
        os.kill(process.pid, signal.SIGTERM)
        process.wait(60)


def test_another_thread_ends_it() -> None:
    server = Server(Config(_nothing, lifespan="off", log_level="warning"))
    with closing(socket.create_server(("127.0.0.1", 0))) as door:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()
