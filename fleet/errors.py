"""What a service of any app can refuse a caller with; every door renders these the same way.

Named by what the caller does next: mend the input, look elsewhere, read again, ask for rights. "Cannot be placed" is not
among them: it is a value (`jobs.core.reasons`).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One thing wrong with an input: the field as a path, and what to do about it."""

    field: str
    detail: str


class ConvoyError(Exception):
    """Base of all; the message is a sentence for people."""

    status = 500
    title = "Internal error"

    def __init__(self, message: str, faults: tuple[FieldFault, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.faults = faults


class InvalidInput(ConvoyError):
    """Mend the named fields and send it again."""

    status = 422
    title = "Invalid input"


class MalformedInput(InvalidInput):
    """Not even readable: broken YAML, not an object, too large."""

    status = 400
    title = "Malformed input"


class TooLarge(InvalidInput):
    status = 413
    title = "Too large"


class NotFound(ConvoyError):
    status = 404
    title = "Not found"


class Conflict(ConvoyError):
    """The object is not in a state that allows this; read it again."""

    status = 409
    title = "Conflict"


class Forbidden(ConvoyError):
    """The caller is known but may not do this; the message names the role that may."""

    status = 403
    title = "Forbidden"


class TooMany(ConvoyError):
    """The caller, or all callers together, have as many of these as they may: end one first, or try again."""

    status = 429
    title = "Too many requests"


class Unavailable(ConvoyError):
    """A member or a part of Convoy does not answer; try again later."""

    status = 503
    title = "Unavailable"


def invalid(field: str, detail: str) -> InvalidInput:
    """The common case: one field, one fault."""
    return InvalidInput(f"{field}: {detail}", (FieldFault(field, detail),))
