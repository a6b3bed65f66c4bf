"""Simulated members on real ports, and a watcher that runs while a test looks at the rows."""

import random
import threading

import pytest
import yaml
from django.utils import timezone

from fleet.changes import signals
from fleet.services.clusters import clusters
from fleet.services.members import event_handlers, member_clients
from fleet.services.watching.manager import WatchManager
from tests.support.kubectl import served
from tests.support.members import members, north, through

__all__ = ["members", "north"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def only_own_handlers(monkeypatch):
    """Other apps' handlers are not what is tested here; and links of former servers are of no use."""
    monkeypatch.setattr(event_handlers, "_handlers", [])
    monkeypatch.setattr(member_clients, "_clients", {})
    for signal in (signals.cluster_changed, signals.capacity_freed, signals.detaching):
        monkeypatch.setattr(signal, "receivers", [])


@pytest.fixture
def watching(transactional_db):
    """Starts the watcher; stops it when the test ends."""
    stops = []

    def start():
        stop = threading.Event()
        thread = threading.Thread(target=WatchManager(stop, random.Random(1)).run, daemon=True)
        thread.start()
        stops.append((stop, thread))

        def end():
            stop.set()
            thread.join(60)

        return end

    yield start
    for stop, thread in stops:
        stop.set()
        thread.join(60)


@pytest.fixture
def kubectl(transactional_db, north, tmp_path):
    clusters.join("north", yaml.safe_dump(north.kubeconfig()), by="test", now=timezone.now())
    with served(tmp_path) as made:
        yield made


@pytest.fixture
def ada(kubectl, admin):
    return through(kubectl.as_user("ada"))
