"""A simulated member is broken on purpose through REST; a real one never, and by nobody who may not."""

import json
import socket
import threading

import pytest

from fleet.models import Event

SILENCE, REVIVE = "/api/v1/clusters/north/silence/", "/api/v1/clusters/north/revive/"


@pytest.fixture
def simulator(tmp_path, settings):
    """The control socket of a simulator that plays north: what it is asked, and what it answers."""
    asked: list[dict] = []
    settings.CONVOY_SIMULATOR = str(tmp_path)
    (tmp_path / "north.kubeconfig").touch()
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(tmp_path / "control.sock"))
    door.listen()

    def serve() -> None:
        while True:
            try:
                connection, _ = door.accept()
            except OSError:
                return
            with connection:
                asked.append(json.loads(connection.makefile("rb").readline()))
                connection.sendall(b'{"ok": true, "message": "done"}\n')

    threading.Thread(target=serve, daemon=True).start()
    yield asked
    door.shutdown(socket.SHUT_RDWR)
    door.close()


@pytest.mark.django_db
def test_it_silences_a_simulated_cluster_and_lets_it_answer_again(north, as_admin, simulator):
    assert as_admin.get("/api/v1/clusters/north/").json()["simulated"]
    assert as_admin.post(SILENCE).status_code == 204
    assert as_admin.post(REVIVE).status_code == 204
    assert simulator == [{"member": "north", "words": ["away"]}, {"member": "north", "words": ["back"]}]
    told = list(Event.objects.order_by("pk").values_list("reason", flat=True))
    assert told == ["SilencedOnPurpose", "RevivedOnPurpose"]


@pytest.mark.django_db
def test_it_breaks_no_real_cluster(north, as_admin, settings, tmp_path):
    assert as_admin.post(SILENCE).status_code == 409
    settings.CONVOY_SIMULATOR = str(tmp_path)
    assert as_admin.post(SILENCE).status_code == 409
    assert not as_admin.get("/api/v1/clusters/north/").json()["simulated"]


@pytest.mark.django_db
def test_it_says_when_the_simulator_is_gone(north, as_admin, settings, tmp_path):
    settings.CONVOY_SIMULATOR = str(tmp_path)
    (tmp_path / "north.kubeconfig").touch()
    assert as_admin.post(SILENCE).status_code == 503


@pytest.mark.django_db
def test_it_lets_only_those_break_it_who_may_cordon_it(north, as_editor, as_viewer, simulator):
    assert (as_editor.post(SILENCE).status_code, as_viewer.post(REVIVE).status_code, simulator) == (403, 403, [])
