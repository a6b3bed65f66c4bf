"""How websockets are served: none stays open whose client reads nothing, however long it keeps the connection."""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from deploy.config.http import EndsUnread


class Protocol(EndsUnread, WebSocketsSansIOProtocol):
    """uvicorn's, which also waits for such a client where its keepalive has given up on it.

    Until then the application does not learn that it has left, either.
    """

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()
