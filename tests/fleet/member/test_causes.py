"""Why a member cannot be reached, in words, with what the network said kept beside."""

import socket
import ssl
import threading

import pytest

from fleet.member import causes
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberAway
from tests.support.free_ports import free_port


def refused(server: str, timeout_s: float = 60) -> MemberAway:
    with pytest.raises(MemberAway) as caught:
        MemberClient(Access(server=server, token="t"), timeout_s=timeout_s).get_text("/readyz")
    return caught.value


def test_it_says_that_a_connection_is_refused_and_keeps_what_the_network_said() -> None:
    server = f"https://127.0.0.1:{free_port()}"
    error = refused(server)
    assert error.message == f"{server} cannot be reached: the connection is refused"
    assert "Errno" in error.raw and "Errno" not in error.message


def test_it_says_that_a_connection_was_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        error = refused(f"https://127.0.0.1:{server.getsockname()[1]}")
    assert error.message.endswith(("the connection was closed", "no TLS connection can be made"))
    assert "(" not in error.message


def test_it_says_that_nobody_answers_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        error = refused(f"https://127.0.0.1:{server.getsockname()[1]}", 1)
    assert error.message.endswith("no answer in time")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionResetError(104, "Connection reset by peer"), "the connection was closed"),
        (socket.gaierror(-2, "Name or service not known"), "its name cannot be resolved"),
        (ssl.SSLError("wrong version number"), "no TLS connection can be made"),
        (OSError(113, "No route to host"), "there is no route to it"),
        (Exception("('Connection aborted.', x)", ConnectionResetError(104, "y")), "the connection was closed"),
        (ValueError("something else"), "something else"),
    ],
)
def test_it_has_words_for_what_the_libraries_raise(error, words) -> None:
    assert causes.in_words(error) == words
