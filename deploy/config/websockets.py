"""How websockets are served: none stays open whose client reads nothing, however long it keeps the connection."""

import asyncio

from django.conf import settings
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class Protocol(WebSocketsSansIOProtocol):
    """uvicorn's, which waits for ever until such a client has read what is left for it, also where it has given up on it.

    Until then the application does not learn that it has left, either.
    """

    _unread: asyncio.TimerHandle | None = None
    """When the client must have read something again; none while it keeps up."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_reading(False)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reading(True)

    def resume_writing(self) -> None:
        self._expect_reading(False)
        super().resume_writing()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()

    def _expect_reading(self, is_expected: bool) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = self.loop.call_later(settings.CONVOY_SEND_S, self.transport.abort) if is_expected else None
