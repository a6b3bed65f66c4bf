"""What runs at the pod's end of a stream: a command (exec), or the output of the pod itself (attach).

A session speaks through named channels (stdin, stdout, stderr, error, resize) and does not know what carries them.
"""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import signal
import struct
import termios
from collections.abc import Callable
from typing import Any, Protocol

from simulator.streaming.source import Entered

CHUNK = 32768
_FOLLOW_S = 0.1
SUCCESS = {"metadata": {}, "status": "Success"}


class Channels(Protocol):
    """The way to the client."""

    def send(self, channel: str, data: bytes) -> None: ...
    def finish(self, status: dict[str, Any]) -> None:
        """The last word: how it ended. Then the connection is closed."""

    def hold(self, is_held: bool) -> None:
        """Whether nothing more is to be read from the client for now."""


class Session(Protocol):
    def begin(self, channels: Channels) -> None: ...
    def received(self, channel: str, data: bytes) -> None: ...
    def closed(self, channel: str) -> None: ...
    def hold(self, is_held: bool) -> None:
        """Whether the client takes nothing for now."""

    def lost(self) -> None:
        """The client has left."""


def failure(code: int) -> dict[str, Any]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


class Command:
    """A command in a pod."""

    def __init__(self, entered: Entered) -> None:
        self._entered, self._process = entered, entered.process
        self._loop = asyncio.get_running_loop()
        self._outputs = {entered.stdout: "stdout"}
        if entered.stderr is not None:
            self._outputs[entered.stderr] = "stderr"
        self._terminal = entered.stdout if entered.stderr is None else None
        self._input: asyncio.WriteTransport | None = None
        self._early: list[bytes] = []
        self._is_input_closed = self._is_input_lost = False
        self._code: int | None = None
        self._channels: Channels | None = None
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._exited)

    def begin(self, channels: Channels) -> None:
        self._channels = channels
        for output in self._outputs:
            os.set_blocking(output, False)
            self._loop.add_reader(output, self._read, output)
        if self._entered.stdin is not None:
            self._opening = self._loop.create_task(self._open_input(channels, self._entered.stdin))
        self._finish()

    def received(self, channel: str, data: bytes) -> None:
        if channel == "resize" and self._terminal is not None:
            return self._resize(self._terminal, data)
        if channel == "stdin" and self._entered.stdin is not None:
            if self._input is None:
                self._early += [] if self._is_input_lost else [data]
            elif not self._input.is_closing():
                self._input.write(data)
        return None

    def closed(self, channel: str) -> None:
        if channel == "stdin":
            self._is_input_closed = True
            if self._input is not None:
                self._input.close()

    def hold(self, is_held: bool) -> None:
        for output in self._outputs:
            if is_held:
                self._loop.remove_reader(output)
            else:
                self._loop.add_reader(output, self._read, output)

    def lost(self) -> None:
        """Ends the command: of a terminal by hanging up."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._abort_input()
        if self._channels is None and self._entered.stdin is not None:
            os.close(self._entered.stdin)
        for output in self._outputs:
            self._loop.remove_reader(output)
            os.close(output)
        self._outputs.clear()

    async def _open_input(self, channels: Channels, descriptor: int) -> None:
        pipe = os.fdopen(descriptor, "wb", buffering=0)
        self._input, _ = await self._loop.connect_write_pipe(lambda: _Input(channels, self._input_lost), pipe)
        for data in self._early:
            self._input.write(data)
        if self._is_input_closed:
            self._input.close()

    def _input_lost(self) -> None:
        self._input, self._is_input_lost = None, True

    def _abort_input(self) -> None:
        if self._input is not None:
            self._input.abort()

    def _read(self, output: int) -> None:
        try:
            data = os.read(output, CHUNK)
        except BlockingIOError:
            return
        except OSError as e:
            if e.errno != errno.EIO:  # the other end of a terminal is closed
                raise
            data = b""
        if data and self._channels is not None:
            self._channels.send(self._outputs[output], data)
            return
        self._loop.remove_reader(output)
        del self._outputs[output]
        os.close(output)
        self._finish()

    def _exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        code = self._process.wait()
        self._code = code if code >= 0 else 128 - code
        self._finish()

    def _finish(self) -> None:
        if self._code is None or self._outputs or self._channels is None:
            return
        self._abort_input()
        self._channels.finish(failure(self._code) if self._code else SUCCESS)

    def _resize(self, terminal: int, data: bytes) -> None:
        with contextlib.suppress(ValueError, KeyError, struct.error, OSError):
            size = json.loads(data)
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))


class _Input(asyncio.BaseProtocol):
    """A command that does not read holds its client up."""

    def __init__(self, channels: Channels, lost: Callable[[], None]) -> None:
        self._channels, self._lost = channels, lost

    def connection_lost(self, exc: Exception | None) -> None:
        self._channels.hold(False)
        self._lost()

    def pause_writing(self) -> None:
        self._channels.hold(True)

    def resume_writing(self) -> None:
        self._channels.hold(False)


class Output:
    """What the pod prints from now on. Its process reads no input, as a container without ``stdin``."""

    def __init__(self, read: Callable[[int], tuple[bytes, bool] | None]) -> None:
        self._read = read
        self._may_send = asyncio.Event()
        self._may_send.set()

    def begin(self, channels: Channels) -> None:
        self._following = asyncio.get_running_loop().create_task(self._follow(channels))

    def received(self, channel: str, data: bytes) -> None: ...

    def closed(self, channel: str) -> None: ...

    def hold(self, is_held: bool) -> None:
        self._may_send.clear() if is_held else self._may_send.set()

    def lost(self) -> None:
        self._following.cancel()

    async def _follow(self, channels: Channels) -> None:
        first = self._read(0)
        offset, is_over = (len(first[0]), first[1]) if first else (0, True)
        while not is_over:
            await asyncio.sleep(_FOLLOW_S)
            await self._may_send.wait()
            if (more := self._read(offset)) is None:
                break
            text, is_over = more
            offset += len(text)
            if text:
                channels.send("stdout", text)
        channels.finish(SUCCESS)
