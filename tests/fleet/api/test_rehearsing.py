"""A simulated member is broken on purpose through REST; a real one never, and by nobody who may not."""

import json
import socket
import threading

import pytest

from fleet.models import Event
from simulator import fault_parser

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


NODE = "/api/v1/clusters/north/nodes/north-gpu-0/reclaim/"


@pytest.mark.django_db
def test_it_reclaims_a_node_of_a_simulated_cluster_with_notice_and_brings_it_back(north, as_admin, simulator):
    assert as_admin.post(NODE, {"notice_s": 45}, format="json").status_code == 204
    assert as_admin.post(NODE).status_code == 204
    assert as_admin.delete(NODE).status_code == 204
    words = [["reclaim", "north-gpu-0", "45.000"], ["reclaim", "north-gpu-0", "120.000"], ["node-up", "north-gpu-0"]]
    assert [each["words"] for each in simulator] == words
    assert all(fault_parser.parse(each).target == "north-gpu-0" for each in words)
    assert "north-gpu-0" in Event.objects.get(reason="ReclaimedOnPurpose", message__contains="45 s").message


@pytest.mark.django_db
@pytest.mark.parametrize("notice_s", [-1, 3601, "soon", None])
def test_it_refuses_a_notice_that_no_market_gives(north, as_admin, simulator, notice_s):
    answer = as_admin.post(NODE, {"notice_s": notice_s}, format="json")
    assert (answer.status_code, simulator) == (422, [])
    assert "notice_s" in answer.content.decode()


@pytest.mark.django_db
def test_it_reclaims_no_node_of_a_real_cluster_and_for_nobody_who_may_not_cordon(north, as_admin, as_editor):
    assert (as_admin.post(NODE).status_code, as_admin.delete(NODE).status_code) == (409, 409)
    assert as_editor.post(NODE).status_code == 403
