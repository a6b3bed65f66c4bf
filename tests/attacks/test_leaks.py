"""What one team reads never names the jobs of another: every reading operation of REST, as viewer and as editor."""

from typing import Any

import pytest
import yaml
from django.utils import timezone

from jobs.models import Job
from jobs.services.submission import manifests, submit
from tests.fleet.api.rest_contract import OPERATIONS
from tests.support import books, quotas
from tests.support.people import client_of, person
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
SECRET = "secret-project"


def submitted(namespace: str, name: str, **fields) -> str:
    body = yaml.safe_load(pytorch_job(name, **fields))
    body["metadata"]["namespace"] = namespace
    policy = yaml.safe_load(POLICY)
    policy["metadata"]["namespace"] = namespace
    text = "\n---\n".join(yaml.safe_dump(each) for each in (policy, body))
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())
    return str(Job.objects.get(name=name).uid)


@pytest.fixture
def fleet() -> dict[str, str]:
    """Two teams in one queue: what the one runs and waits with stands before the other's job."""
    books.a_cluster("north", gpus=8)
    quotas.apply_tree(quotas.leaf("shared", **quotas.gpus(4, 8), namespaces=["team-a", "team-b"]))
    for number in range(3):
        submitted("team-b", f"{SECRET}-{number}", workers=3)
    mine = submitted("team-a", "mine", workers=3)
    books.cycle()
    return {"id": mine, "name": "north", "node": "node", "username": "mal", "path": "root/shared"}


def named(client: Any, known: dict[str, str]) -> tuple[dict[str, str], int]:
    """The operations whose answer names the other team's jobs, with the text around; and how many answered."""
    found, answered = {}, 0
    for operation in OPERATIONS:
        if operation.method.upper() != "GET":
            continue
        path = operation.path
        for name, value in known.items():
            path = path.replace("{" + name + "}", value)
        answer = client.get(path)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        answered += answer.status_code == 200
        if SECRET.encode() in content:
            at = content.index(SECRET.encode())
            found[path] = content[max(0, at - 120) : at + 60].decode()
    return found, answered


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_it_names_no_job_of_another_team(fleet: dict[str, str], role: str) -> None:
    leaks, answered = named(client_of(person("mal", (role, "team-a"))), fleet)
    assert answered > 15
    assert not leaks, "\n".join(f"{path}: ...{text}" for path, text in leaks.items())


def test_who_may_see_every_team_sees_the_names(as_admin: Any, fleet: dict[str, str]) -> None:
    """Else the test above could not fail."""
    assert len(named(as_admin, fleet)[0]) > 5
