"""How a command fails: one sentence, a hint what to do next, and an exit code that scripts may rely on.

It knows neither HTTP nor the terminal.
"""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes. They are stable, and documented in `convoy --help`."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    TIMEOUT = 5
    INTERRUPTED = 130


class Problem(Exception):
    """Ends the command with a message. ``details`` are printed on separate lines, for example one for each wrong field."""

    def __init__(
        self, message: str, *, hint: str = "", exit_code: Exit = Exit.ERROR, details: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
        self.details = details


def usage(message: str, hint: str = "") -> Problem:
    return Problem(message, hint=hint, exit_code=Exit.USAGE)


def missing(message: str, hint: str = "") -> Problem:
    return Problem(message, hint=hint, exit_code=Exit.NOT_FOUND)
