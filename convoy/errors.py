"""What can go wrong, named by what the caller does next. Every message says what is wrong and where."""

from collections.abc import Sequence


class ConvoyError(Exception):
    """Base of all errors of this package."""


class Unreachable(ConvoyError):
    """The server does not answer, or is not known: check its address, or try again later."""


class Refused(ConvoyError):
    """The server said no. ``status`` is that of HTTP, ``faults`` say which field is wrong and how."""

    def __init__(self, message: str, status: int, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.faults = tuple(faults)


class NotFound(Refused):
    """There is no such object, or the caller may not see it."""

    def __init__(self, message: str, status: int = 404, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message, status, faults)


class JobFailed(ConvoyError):
    """The job has ended in another state than the one that was waited for."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.state = state


class TimedOut(ConvoyError):
    """The job was not in the state in time; it goes on."""


def of_answer(status: int, body: object) -> Refused:
    """The problem details (RFC 9457) of an answer."""
    problem = body if isinstance(body, dict) else {}
    faults = [fault for fault in problem.get("errors") or [] if isinstance(fault, dict)]
    pairs = [(str(fault.get("field", "")), str(fault.get("detail", ""))) for fault in faults]
    message = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    more = [f"{field}: {detail}" for field, detail in pairs if detail not in message]
    return (NotFound if status == 404 else Refused)("; ".join([message, *more]), status, pairs)
