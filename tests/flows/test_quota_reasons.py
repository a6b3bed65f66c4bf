"""Why a job waits for its quota: each reason of the list, with its numbers, the same through every door people use."""

import pytest
import yaml
from django.utils import timezone

from fleet.services.authorization import access
from jobs.models import Job
from quotas.models import Queue
from quotas.services import queues
from tests.cli.builders import Convoy
from tests.support import books
from tests.support.kubectl import served
from tests.support.people import client_of
from tests.support.quotas import GPU, JOBS, apply_tree, gpus, leaf
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LABEL = "quota.scheduling.alibabacloud.com/name"
BLOCK = {"attributes": {"queue-policy": "Block"}}
REASONS = {
    "over": ("QuotaExceeded", {"path": "root/full", "resource": GPU, "asked": 3, "used": 3, "max": 5}),
    "second": ("MaxJobsReached", {"path": "root/single", "resource": JOBS, "asked": 1, "used": 1, "max": 1}),
    "behind": ("BehindInQueue", {"path": "root/line", "position": 2, "blocker": "default/head"}),
    "held": ("QueueHeld", {"path": "root/shut"}),
    "owner": ("WaitingForReclaim", {"path": "root/team", "from_jobs": ["default/victim"]}),
    "stranger": ("NoQuotaForNamespace", {}),
    "huge": ("NeverFits", {"path": "root/small", "resource": GPU, "asked": 3, "max": 1}),
}


def job(name: str, queue: str, second: int) -> str:
    body = yaml.safe_load(pytorch_job(name))
    body["metadata"] |= {"labels": {LABEL: queue}, "annotations": {"convoy.dev/priority": str(-second)}}
    return yaml.safe_dump(body)


@pytest.fixture
def waiting(db):
    """One job for each reason; where it takes one that runs, that one was there before."""
    books.a_cluster(gpus=100)
    team = leaf("team", "", leaf("mine", **gpus(3, 3)), leaf("lent", **gpus(0, 3)), **gpus(3, 3))
    others = [leaf("small", **gpus(0, 1)), leaf("shut"), leaf("theirs", "other"), team]
    full, line = leaf("full", **gpus(0, 5)), leaf("line", **gpus(0, 5), **BLOCK)
    apply_tree(full, leaf("single", max={JOBS: 1}), line, *others)
    queues.set_state(Queue.objects.get(path="root/shut"), Queue.State.HELD, by="system", now=timezone.now())
    running = {"fills": "full", "first": "single", "ahead": "line", "victim": "lent"}
    books.apply(*(job(name, queue, 0) for name, queue in running.items()))
    assert books.cycle() == len(running)
    books.sent()
    Job.objects.update(state=Job.State.RUNNING, started_at=timezone.now())
    wait = [("over", "full"), ("second", "single"), ("head", "line"), ("behind", "line"), ("held", "shut")]
    wait += [("owner", "mine"), ("stranger", "theirs"), ("huge", "small")]
    books.apply(*(job(name, queue, i) for i, (name, queue) in enumerate(wait)))
    assert books.cycle() == 0
    return {name: Job.objects.get(name=name) for name in REASONS}


def test_it_is_told_with_its_numbers_over_rest(waiting, admin):
    client = client_of(admin)
    for name, (code, facts) in REASONS.items():
        told = client.get(f"/api/v1/jobs/{waiting[name].uid}/").json()["reason"]
        assert told["code"] == code and told["message"], (name, told)
        assert {key: told["quota"][key] for key in facts} == facts, (name, told)
    until = client.get(f"/api/v1/jobs/{waiting['owner'].uid}/").json()["reason"]["quota"]["until"]
    assert until == Job.objects.get(name="victim").reclaim["until"]


def test_it_is_found_in_the_lists_and_units_that_the_console_reads(waiting, admin):
    client = client_of(admin)
    for name, (code, _) in REASONS.items():
        assert [
            each["name"] for each in client.get(f"/api/v1/jobs/?reason={code}&search={name}").json()["results"]
        ] == [name]
        assert client.get(f"/api/v1/jobs/{waiting[name].uid}/explain/").json()["reason"]["code"] == code
    units = {each["name"]: each for each in client.get("/api/v1/queueunits/?queue=root/line").json()["results"]}
    assert "default/head" in str(units["behind"])


def test_kubectl_describe_tells_it(waiting, admin, tmp_path):
    with served(tmp_path) as kubectl:
        described = kubectl.as_user("ada").says("describe", "pytorchjob", *REASONS)
    blocks = {name: text for name, text in zip(REASONS, described.split("\n\n\n"), strict=True)}
    for name, (code, _) in REASONS.items():
        message = waiting[name].reason["message"]
        assert code in blocks[name] and message in blocks[name], blocks[name]


def test_the_command_line_explains_it(waiting, admin, tmp_path, live_server):
    convoy = Convoy(tmp_path, live_server.url)
    convoy.env["CONVOY_TOKEN"] = access.mint(admin, "test", life=None, now=timezone.now())[1]
    for name, (code, _) in REASONS.items():
        said = convoy("explain", name)
        assert said.code == 0 and code in said.out and waiting[name].reason["message"] in " ".join(said.out.split())
