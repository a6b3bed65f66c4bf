"""One HTTP/2 connection: all lists and watches of a member share it.

Kubernetes API servers speak HTTP/2. A peer that is gone without a word is noticed by pings, since a watch may have nothing to
say for long.
"""

import asyncio
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, Event, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from fleet.member.streaming.answer import Answer

_STREAM_WINDOW = 2**20
"""Bytes that one answer may be ahead of its reader."""
_CONNECTION_WINDOW = 2**24
_PING_S = 15.0
_SILENT_S = 2.5 * _PING_S
Headers = list[tuple[str, str]]


class Http2(asyncio.Protocol):
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._h2.local_settings = Settings(
            client=True,
            initial_values={SettingCodes.ENABLE_PUSH: 0, SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW},
        )
        self._answers: dict[int, Answer] = {}
        self._transport: asyncio.Transport | None = None
        self._heard_at = self._loop.time()
        self._ping: asyncio.TimerHandle | None = None
        self.is_open = False
        """Whether it takes requests."""

    # for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW)
        self.is_open, self._heard_at = True, self._loop.time()
        self._flush()
        self._ping = self._loop.call_later(_PING_S, self._keep_alive)

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        try:
            for event in self._h2.receive_data(data):
                self._handle(event)
        except H2Error as e:
            self.abort(ConnectionError(f"the peer broke HTTP/2: {e}"))
            return
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort(exc or ConnectionError("the connection was closed"))

    # for the client

    def request(self, headers: Headers) -> Answer:
        """Sends a GET; raises `H2Error` when the peer takes no more at once."""
        stream = self._h2.get_next_available_stream_id()
        self._h2.send_headers(stream, [(name.encode(), value.encode()) for name, value in headers], end_stream=True)
        answer = self._answers[stream] = Answer(
            lambda size: self._acknowledge(stream, size), lambda is_whole: self._close(stream, is_whole)
        )
        self._flush()
        return answer

    def abort(self, error: BaseException) -> None:
        """Ends the connection and every answer that is not complete."""
        self.is_open = False
        if self._ping is not None:
            self._ping.cancel()
        answers, self._answers = self._answers, {}
        for answer in answers.values():
            answer.fail(error)
        if self._transport is not None:
            self._transport.abort()

    def _handle(self, event: Event) -> None:
        if isinstance(event, ConnectionTerminated):
            self.is_open = False  # what is under way may still end
            return
        answer = self._answers.get(getattr(event, "stream_id", None) or 0)
        match event:
            case DataReceived():
                self._feed(answer, event)
            case ResponseReceived() if answer:
                headers = event.headers or ()
                answer.began(int(next(value for name, value in headers if name == b":status")), headers)
            case StreamEnded() if answer:
                answer.complete()
            case StreamReset() if answer:
                answer.fail(ConnectionError("the stream was reset"))

    def _feed(self, answer: Answer | None, event: DataReceived) -> None:
        size = event.flow_controlled_length or 0
        if answer is not None:
            answer.feed(event.data or b"", size)
        elif event.stream_id is not None:
            self._acknowledge(event.stream_id, size)

    def _acknowledge(self, stream: int, size: int) -> None:
        if size and self.is_usable:
            self._h2.acknowledge_received_data(size, stream)
            self._flush()

    def _close(self, stream: int, is_whole: bool) -> None:
        if self._answers.pop(stream, None) is not None and not is_whole and self.is_usable:
            try:
                self._h2.reset_stream(stream, ErrorCodes.CANCEL)
            except H2Error:
                return  # it has ended meanwhile
            self._flush()

    @property
    def is_usable(self) -> bool:
        """Whether what is under way goes on, though it may take no more requests."""
        return self._transport is not None and not self._transport.is_closing()

    def _flush(self) -> None:
        if self.is_usable and self._transport and (data := self._h2.data_to_send()):
            self._transport.write(data)

    def _keep_alive(self) -> None:
        if self._loop.time() - self._heard_at > _SILENT_S:
            self.abort(TimeoutError("the peer is silent"))
            return
        self._h2.ping(b"convoy\0\0")
        self._flush()
        self._ping = self._loop.call_later(_PING_S, self._keep_alive)
