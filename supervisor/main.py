"""``convoy-supervisor``: in a pod with the service account of its namespace, or anywhere with a kubeconfig."""

import argparse
import asyncio
import os
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import structlog

from fleet.errors import ConvoyError
from fleet.member import in_pod, kubeconfig
from fleet.member.client import Access
from supervisor import running
from supervisor.core.signals import NOTICE_S
from supervisor.running import Door
from supervisor.status_server import PORT

TOKEN_S = 30.0
"""How often the token's file is read again."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="convoy-supervisor", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="without it: the service account of the pod")
    parser.add_argument("--context", default="", help="of the kubeconfig")
    parser.add_argument(
        "--notice",
        action="append",
        default=[],
        metavar="CAUSE=SECONDS",
        help=f"how long before the end a provider's signal comes; known: {', '.join(sorted(NOTICE_S))}",
    )
    parser.add_argument(
        "--reports-tls", type=Path, help="folder with tls.crt and tls.key: reports of trainings are taken"
    )
    parser.add_argument("--reports-port", type=int, default=PORT, help=f"where they are taken; {PORT}")
    options = parser.parse_args(arguments)
    try:
        notice_s = {**NOTICE_S, **dict(map(_notice, options.notice))}
        access = _access(options.kubeconfig, options.context, os.environ)
    except (OSError, ValueError, ConvoyError) as e:
        print(f"convoy-supervisor: {e}", file=sys.stderr)
        return 2
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    door = Door(options.reports_tls, options.reports_port) if options.reports_tls else None
    asyncio.run(_run(lambda: _access(options.kubeconfig, options.context, os.environ), access, notice_s, door))
    return 0


async def _run(
    read_access: Callable[[], Access], access: Access, notice_s: Mapping[str, float], door: Door | None
) -> None:
    """A token is renewed by the kubelet in its file: then it begins anew, which costs nothing, for it remembers nothing."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    identity = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
    while not ended.is_set():
        renewed = asyncio.Event()
        work = asyncio.create_task(running.run(access, identity, notice_s, renewed, door))
        while not (ended.is_set() or work.done() or (now := _reread(read_access, access)) != access):
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ended.wait()), TOKEN_S)
        renewed.set()
        await work
        access = access if ended.is_set() else now


def _reread(read_access: Callable[[], Access], access: Access) -> Access:
    try:
        return read_access()
    except (OSError, ConvoyError):
        return access


def _notice(text: str) -> tuple[str, float]:
    cause, _, amount = text.partition("=")
    if cause not in NOTICE_S or not amount.isdigit():
        raise ValueError(f"--notice {text}: needs CAUSE=SECONDS with one of {', '.join(sorted(NOTICE_S))}")
    return cause, float(amount)


def _access(path: Path | None, context: str, environ: Mapping[str, str]) -> Access:
    return kubeconfig.parse(path.read_text(), context) if path is not None else in_pod.access(environ)


if __name__ == "__main__":
    sys.exit(main())
