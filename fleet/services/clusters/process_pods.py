"""Publishes to the simulators of this machine which clusters of the fleet are real: beside those, pods do not run as processes.

A simulator runs beside the control plane only where ``manage.py up`` started it, and knows the fleet only by this file.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from django.conf import settings

from fleet.models import Cluster

DEFAULT_NAMESPACES = ("default", "arena-system")
"""The simulators' own default, where ``CONVOY_PROCESS_PODS`` is not set."""
_SERVER = re.compile(r"^\s*server:\s*(\S+)\s*$", re.MULTILINE)


def fleet_file() -> Path:
    return Path(settings.CONVOY_HOME) / "run" / "fleet.json"


def publish(clusters: Iterable[Cluster]) -> None:
    """Write the names of the real clusters, where there are simulators to read them and when they changed."""
    folder = Path(settings.CONVOY_HOME) / "simulator"
    if not folder.is_dir():
        return
    simulated = {server for file in folder.glob("*.kubeconfig") for server in _SERVER.findall(file.read_text())}
    real = sorted(cluster.name for cluster in clusters if cluster.server not in simulated)
    text = json.dumps({"real": real})
    file = fleet_file()
    if file.exists() and file.read_text() == text:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(file)


def namespaces(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Namespaces whose pods may run as processes of this machine now, for display; the simulator decides by itself."""
    if not (Path(settings.CONVOY_HOME) / "simulator").is_dir():
        return []
    asked = environ.get("CONVOY_PROCESS_PODS")
    file = fleet_file()
    if asked is None and (not file.exists() or json.loads(file.read_text())["real"]):
        return []
    words = DEFAULT_NAMESPACES if asked is None else asked.replace(",", " ").split()
    return sorted(set(words) - {"off"})
