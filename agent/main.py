"""``convoy agent``: in a pod of the member with the service account of its manifest, or anywhere with a kubeconfig."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import structlog

from agent import agent
from fleet.errors import ConvoyError
from fleet.member import in_pod, kubeconfig
from fleet.member.client import Access

MANIFEST = Path(__file__).with_name("manifest.yaml")
_IMAGE = "convoy:latest"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="convoy agent",
        description="Runs in a member cluster: stops the jobs with the policy convoy.dev/unreachable-cluster: Fence when the"
        " fleet has not reached the member for the time of its Lease.",
    )
    parser.add_argument("--manifest", action="store_true", help="print what installs the agent, for kubectl apply -f -")
    parser.add_argument("--image", default=_IMAGE, help=f"with --manifest: the product's image; default {_IMAGE}")
    parser.add_argument("--kubeconfig", type=Path, help="without it: the service account of the pod")
    parser.add_argument("--context", default="", help="of the kubeconfig")
    options = parser.parse_args(arguments)
    if options.manifest:
        print(MANIFEST.read_text().replace(f"image: {_IMAGE}", f"image: {options.image}"), end="")
        return 0
    try:
        _access(options.kubeconfig, options.context, os.environ)
    except (OSError, ValueError, ConvoyError) as e:
        print(f"convoy agent: {e}", file=sys.stderr)
        return 2
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    agent.run(lambda: _access(options.kubeconfig, options.context, os.environ), _steady, lambda: datetime.now(UTC), end)
    return 0


def _steady() -> float:
    """Seconds that no step of the machine's clock changes, those of its sleep included where the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _access(path: Path | None, context: str, environ: Mapping[str, str]) -> Access:
    return kubeconfig.parse(path.read_text(), context) if path is not None else in_pod.access(environ)


if __name__ == "__main__":
    sys.exit(main())
