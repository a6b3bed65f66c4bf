"""What a member's API can say no with, named by what the caller should do next.

The only place that knows HTTP status codes of a member. Bodies are reduced to the member's own Status message; nothing
else of an answer is kept, because it may carry secrets.
"""

from fleet.member import answers

LONGEST_MESSAGE = 4096
"""Characters: it is shown, logged and stored with a job."""


class MemberError(Exception):
    """Base of all; ``status`` is the HTTP code (0: no answer), ``reason`` the Kubernetes reason word.

    ``raw`` is what the library said where ``message`` says it in words; for people who ask for it.
    """

    def __init__(self, message: str, *, status: int = 0, reason: str = "", raw: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.raw = raw


class MemberAway(MemberError):
    """No answer, a broken one, 429 or 5xx: retry later with back-off."""


class MemberRefused(MemberError):
    """The member understood and said no (400, 403, 422 ...): retrying the same call is of no use."""


class MemberDenied(MemberRefused):
    """401 or 403: the credentials are expired, foreign or too weak; a person has to renew them."""


class MemberMissing(MemberRefused):
    """404: the object, or the kind itself, is not there."""


class MemberExists(MemberRefused):
    """409 AlreadyExists: it was created before, perhaps by ourselves."""


class MemberChanged(MemberError):
    """409 Conflict: re-read the object and try once more."""


class MemberExpired(MemberError):
    """410: the watch or list position is compacted; list again."""


_OTHER_OBJECT = "metadata.uid: Invalid value"
"""How an API server says that a patch with a uid is about another object of the name than the one that is there."""
_BY_STATUS: dict[int, type[MemberError]] = {
    401: MemberDenied,
    403: MemberDenied,
    404: MemberMissing,
    410: MemberExpired,
    429: MemberAway,
}


def from_answer(status: int, body: bytes) -> MemberError:
    """The error for an HTTP answer ≥ 400; understands Kubernetes Status bodies and survives anything else."""
    message, reason = _status_words(body)
    message = message or f"HTTP {status}"
    if status == 409:
        kind = MemberExists if reason == "AlreadyExists" else MemberChanged
        return kind(message, status=status, reason=reason)
    if status == 422 and _OTHER_OBJECT in message:
        return MemberChanged(message, status=status, reason=reason)
    error = _BY_STATUS.get(status, MemberAway if status >= 500 else MemberRefused)
    return error(message, status=status, reason=reason)


def _status_words(body: bytes) -> tuple[str, str]:
    try:
        parsed = answers.parse(body)
    except ValueError:
        return "", ""
    if not isinstance(parsed, dict) or parsed.get("kind") != "Status":
        return "", ""
    return str(parsed.get("message") or "")[:LONGEST_MESSAGE], str(parsed.get("reason") or "")[:LONGEST_MESSAGE]
