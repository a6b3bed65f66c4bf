"""Ways into the process of a pod: another command in its namespaces, and connections to its loopback.

A launcher enters and gives up its privileges before it runs anything, as for the pod's own command.
"""

import contextlib
import json
import os
import pty
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from simulator.node.runtime import launcher
from simulator.node.runtime.isolation import PYTHON
from simulator.node.runtime.processes import Process
from simulator.streaming.source import Entered, NotEntered

_NETWORK = ("net",)
_ALL = ("net", "uts", "ipc", "pid_for_children", "mnt")
_CONNECT_S = 10.0


def enter(process: Process, command: list[str], *, stdin: bool, tty: bool) -> Entered:
    """Starts a command beside the pod's own, with its files, environment and rights."""
    launch = process.launch
    spec = {"command": command, "env": launch.env, "workdir": launch.workdir, "cwd": str(launch.work), "tty": tty}
    ours: list[int] = []
    theirs: list[int] = []
    try:
        with _namespaces(process, _ALL) as namespaces:
            if tty:
                terminal, inner = pty.openpty()
                ours, theirs = [os.dup(terminal), terminal], [inner, inner, inner]
                spec["stdin"] = True
            else:
                ours, theirs = _pipes(stdin)
            return _started("enter", spec | {"namespaces": namespaces, "stdin": stdin or tty}, namespaces, ours, theirs)
    except (OSError, NotEntered) as e:
        for descriptor in ours:
            os.close(descriptor)
        if isinstance(e, NotEntered):
            raise
        raise NotEntered(f"cannot enter the container: {e.strerror or e}") from e
    finally:
        for descriptor in set(theirs):
            os.close(descriptor)


def _pipes(stdin: bool) -> tuple[list[int], list[int]]:
    inputs = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), -1)
    outputs, errors = os.pipe(), os.pipe()
    ours = [*([inputs[1]] if stdin else []), outputs[0], errors[0]]
    return ours, [inputs[0], outputs[1], errors[1]]


def _started(verb: str, spec: launcher.Spec, namespaces: list[int], ours: list[int], theirs: list[int]) -> Entered:
    reads, writes = os.pipe()
    try:
        process = subprocess.Popen(
            [*PYTHON, launcher.__file__, verb, str(reads)],
            env={},
            cwd="/",
            pass_fds=[*namespaces, reads],
            stdin=theirs[0],
            stdout=theirs[1],
            stderr=theirs[2],
            start_new_session=True,
        )
    finally:
        os.close(reads)
    with os.fdopen(writes, "wb") as pipe, contextlib.suppress(BrokenPipeError):
        pipe.write(json.dumps(spec).encode() + b"\n")
    if spec["tty"]:
        return Entered(process, ours[0], ours[1], None)
    return Entered(process, ours[0] if spec["stdin"] else None, ours[-2], ours[-1])


def connect(process: Process, port: int) -> socket.socket:
    """A connection to the port on the loopback of the pod's network."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs, _namespaces(process, _NETWORK) as namespaces:
        words = [*PYTHON, launcher.__file__, "connect", str(theirs.fileno()), str(port), *map(str, namespaces)]
        with subprocess.Popen(words, env={}, cwd="/", pass_fds=[*namespaces, theirs.fileno()]):
            theirs.close()
            ours.settimeout(_CONNECT_S)
            answer, descriptors, _, _ = socket.recv_fds(ours, 256, 1, socket.MSG_CMSG_CLOEXEC)
    if not descriptors:
        raise NotEntered(f"failed to connect to localhost:{port} inside the pod: {answer.decode() or 'no answer'}")
    connection = socket.socket(fileno=descriptors[0])
    connection.setblocking(False)
    return connection


@contextmanager
def _namespaces(process: Process, names: tuple[str, ...]) -> Iterator[list[int]]:
    """Descriptors of the launcher's namespaces, in the order in which they are entered."""
    descriptors: list[int] = []
    try:
        for name in (*(("user",) if os.geteuid() else ()), *names):
            descriptors.append(os.open(f"/proc/{process.pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC))
        yield descriptors
    except FileNotFoundError as e:
        raise NotEntered("the container has ended") from e
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
