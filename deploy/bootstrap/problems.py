"""The failures that can occur before the product runs, each with one sentence that says what to do.

Everything here is raised as ``Problem`` and printed without a traceback; anything else that escapes is a bug of ours.
"""

import errno
import re

FULL = (errno.ENOSPC, errno.EDQUOT)
CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
NO_NETWORK = (
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "failed to establish a new connection",
    "error sending request",
    "failed to fetch",
    "dns error",
    "connection refused",
    "could not find a version that satisfies",
    "enotfound",
    "eai_again",
    "econnrefused",
    "etimedout",
)
NO_SPACE = ("no space left on device", "os error 28", "enospc", "disk quota exceeded")
READ_ONLY = ("read-only file system", "os error 30", "erofs", "permission denied")
UNBUILT = (r"Failed (?:to build|building wheel for) `?([A-Za-z0-9_.\-=]+)`?", r"Failed to build ([\w.\-]+)")


class Problem(Exception):
    """Said to the person as it is; the command ends with ``code``."""

    def __init__(self, sentence: str, code: int = 1) -> None:
        super().__init__(sentence)
        self.code = code


def of_error(error: OSError, doing: str) -> Problem:
    """The sentence for a failed system call of ours."""
    place = error.filename or "it"
    if error.errno in FULL:
        return Problem(f"The disk is full, so I could not {doing}: free some space and run this again.")
    if error.errno in CLOSED:
        return Problem(
            f"{place} cannot be written, so I could not {doing}: make it writable (CONVOY_HOME moves the state)."
        )
    return Problem(f"I could not {doing}: {error.strerror or error}.")


def of_output(output: str, doing: str) -> Problem:
    """The sentence for a tool (pip, uv, npm) that failed, from what it printed."""
    lowered = output.lower()
    if any(sign in lowered for sign in NO_SPACE):
        return Problem(f"The disk is full, so I could not {doing}: free some space and run this again.")
    if any(sign in lowered for sign in READ_ONLY):
        return Problem(f"The checkout or its caches cannot be written, so I could not {doing}: make them writable.")
    for pattern in UNBUILT:
        if match := re.search(pattern, output):
            return Problem(
                f"{match.group(1)} has no ready-made wheel for this machine and could not be built: install a C "
                f"compiler and the Python headers, or use a machine that has a wheel, and run this again."
            )
    if any(sign in lowered for sign in NO_NETWORK):
        return Problem(
            f"I could not {doing} because the package registry cannot be reached: check the network or proxy."
        )
    return Problem(f"I could not {doing}. The tool's last words:\n{last_lines(output)}")


def last_lines(output: str, count: int = 12) -> str:
    """The end of an output, indented and without colours: what to show when nothing better is known."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    lines = [line.rstrip() for line in plain.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-count:]) or "  (it said nothing)"
