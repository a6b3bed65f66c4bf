"""A hostile tenant creates a second copy of another team's job in its own namespace of a member, through the fleet's own proxy.

It has the labels, the mark, and (by other rights in the member) a status of success. It decides nothing about that job, and
stops no scheduling.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from fleet.kube.resources import PYTORCH_JOBS
from fleet.models import Event, Grant
from jobs.models import Job, Work
from jobs.services.follow.status import JobEventHandler
from jobs.services.lifecycle.copies import provenance
from tests.attacks.kube_door import PROXY, Door
from tests.support import books
from tests.support.members import with_namespace
from tests.support.passive import passive_member
from tests.support.people import client_of, person
from tests.support.world import pytorch_job

SUCCEEDED = {"status": {"conditions": [{"type": "Succeeded", "status": "True", "reason": "x", "message": "spoofed"}]}}
HOME = PROXY.replace("north", "{}") + "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["victim", "another"])
def test_a_second_copy_in_another_namespace_ends_no_job_and_stops_no_scheduling(tmp_path: Path, name: str) -> None:
    provenance._reported.clear()
    with passive_member(tmp_path) as member:
        with_namespace(member.client, "team-a")
        books.apply(pytorch_job("victim"))
        books.cycle()
        member.work(PYTORCH_JOBS)
        mal = person("mal", (Grant.Role.EDITOR, "team-a"), (Grant.Role.VIEWER, "default"))
        copied = _copied(mal, name)
        door, home = Door(mal), HOME.format(member.cluster.name)
        assert door.ask("POST", home, json.dumps(copied).encode())[0] == 201
        patched = door.ask(
            "PATCH", f"{home}/{name}/status", json.dumps(SUCCEEDED).encode(), "application/merge-patch+json"
        )
        assert patched[0] == 403, "a status is written by the member's controllers"
        member.client.merge_patch(PYTORCH_JOBS.path("team-a", name, "status"), SUCCEEDED)
        seen = member.client.list(PYTORCH_JOBS.path())["items"]
        assert len(seen) == 2
        for _ in range(2):
            JobEventHandler().on_update(member.cluster.pk, PYTORCH_JOBS, seen, timezone.now())
        books.apply(pytorch_job("innocent", workers=0))
        books.cycle()
        assert books.job("victim").state == "Dispatched"
        assert books.job("innocent").state == Job.State.PLACED
        assert Work.objects.filter(job_uid=books.job("victim").uid).count() == 1
        assert Event.objects.filter(reason="ObjectNotBelieved").count() == 1, "told, and told once"
        assert door.ask("GET", f"{home}/{name}")[0] == 200, "what Convoy did not make, it does not remove"


def _copied(mal: Any, name: str) -> dict[str, Any]:
    """The copy as REST shows it to a viewer, with all that marks it, in the attacker's namespace."""
    answer = client_of(mal).get(f"/api/v1/jobs/{books.job('victim').uid}/copy/").json()
    shown = answer.get("manifest", answer)
    kept = {key: shown["metadata"].get(key) or {} for key in ("labels", "annotations")}
    assert any(key.startswith("convoy.dev/") for key in kept["labels"])
    return {
        **{key: shown[key] for key in ("apiVersion", "kind", "spec")},
        "metadata": {"name": name, "namespace": "team-a", **kept},
    }
