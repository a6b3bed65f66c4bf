"""A member's answer passed on as it comes: bytes, not objects. Knows HTTP and nothing of who asked or why.

Whatever the status, the answer is the caller's to read; only a broken connection is an error here.
"""

import contextlib

import urllib3

from fleet.member.errors import MemberAway

CHUNK = 64 * 1024


class Passing:
    """An open answer. One thread reads; any other may close it, which ends the read."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self.status = response.status

    def header(self, name: str) -> str:
        return str(self._response.headers.get(name, ""))

    def read(self) -> bytes:
        """What has arrived, at least a byte; empty at the end. Still compressed if it was sent so."""
        try:
            return self._response.read1(CHUNK, decode_content=False)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as e:
            raise MemberAway(f"the answer broke off: {type(e).__name__}") from e

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._response.shutdown()
        self._response.close()
