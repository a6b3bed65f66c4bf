"""Why a member cannot be reached, in words: what the network libraries raise is for logs, not for people."""

import errno
import socket
import ssl
from collections.abc import Iterator
from http.client import HTTPException

import urllib3

_NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)


def in_words(error: BaseException) -> str:
    """The most telling of the error and what it was raised from; the library's own text where none of them is known."""
    for each in _chain(error):
        if words := _known(each):
            return words
    return raw(error)


def raw(error: BaseException) -> str:
    """The innermost text, without the object it is about."""
    inner = getattr(error, "reason", None)
    text = str(inner if isinstance(inner, BaseException) else error) or type(error).__name__
    return text.partition("): ")[2] or text


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its reason, its arguments and its causes, the innermost first."""
    chain: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and each not in chain:
            chain.append(each)
            waiting += [getattr(each, "reason", None), each.__cause__, each.__context__, *each.args]
    return reversed(chain)


def _known(error: BaseException) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message})"
        case ssl.SSLError():
            return "no TLS connection can be made"
        case socket.gaierror() | urllib3.exceptions.NameResolutionError():
            return "its name cannot be resolved"
        case ConnectionRefusedError():
            return "the connection is refused"
        case urllib3.exceptions.NewConnectionError():
            return ""  # a kind of time-out to the library; its text says what it was, such as a private address
        case ConnectionError() | HTTPException():
            return "the connection was closed"
        case TimeoutError() | urllib3.exceptions.TimeoutError():
            return "no answer in time"
        case OSError() if error.errno in _NO_ROUTE:
            return "there is no route to it"
    return ""
