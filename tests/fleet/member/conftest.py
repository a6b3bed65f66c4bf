"""A server that only listens."""

import socket

import pytest


class Listener:
    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(60)
        self.port = self._socket.getsockname()[1]

    def heard(self):
        """All that the first caller said before it hung up."""
        connection, _ = self._socket.accept()
        with connection:
            connection.settimeout(60)
            return connection.recv(1024)

    def close(self):
        self._socket.close()


@pytest.fixture
def unused_listener():
    listener = Listener()
    yield listener
    listener.close()
