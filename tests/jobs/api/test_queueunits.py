"""Places in queues through REST and kubectl: in order, with who is ahead; moved to another queue by whom it is theirs to."""

import json
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from fleet.models import Grant
from jobs.models import Job
from jobs.services.scheduling.demand import estimates
from jobs.services.submission import manifests, submit
from quotas.models import Queue, QuotaGrant
from quotas.services import trees
from tests.quotas.core.builders import manifest, quota
from tests.support.kubectl import served
from tests.support.people import client_of, person
from tests.support.world import POLICY, pytorch_job

UNITS = "/api/v1/queueunits/"


@pytest.fixture
def crowd(db):
    """Two jobs of namespace vision wait in its queue; another queue is for speech, a third one for everybody."""
    now = timezone.now()
    root = quota(
        "root", 99, 99, quota("v", 4, 9, namespaces=["vision"]), quota("s", 4, 9, namespaces=["speech"]), quota("o")
    )
    trees.apply(manifest(root), by="test", now=now)
    text = "---\n".join([POLICY, *(pytorch_job(name).replace("default", "vision") for name in ("first", "second"))])
    documents = manifests.parse(text.encode())
    for each in documents:
        each["metadata"]["namespace"] = "vision"
    submit.apply(documents, by="test", now=now)


@pytest.fixture(autouse=True)
def fresh():
    """Guesses are kept for a moment: not from one test to the next."""
    estimates.clear_cache()


def url(name, verb=""):
    return f"{UNITS}{Job.objects.get(name=name).uid}/{verb}"


@pytest.mark.django_db
def test_it_says_who_stands_where_and_behind_whom(crowd, as_editor):
    shown = as_editor.get(f"{UNITS}?queue=root/v").json()["results"]
    assert [(each["name"], each["position"], each["ahead"], each["phase"]) for each in shown] == [
        ("first", 1, "", "Enqueued"), ("second", 2, "vision/first", "Enqueued"),
    ]  # fmt: skip
    queue = Queue.objects.get(path="root/v").name
    assert as_editor.get(f"{UNITS}?queue={queue}&phase=Running").json()["results"] == []
    assert as_editor.get(f"{UNITS}?phase=Nonsense").status_code == 422


@pytest.mark.django_db
def test_it_guesses_when_a_job_starts_and_says_what_the_guess_rests_on(crowd, as_editor):
    now = timezone.now()
    assert as_editor.get(url("second")).json()["estimate"]["basis"] == "the quota has room now; the clusters decide"
    trees.edit(
        [{"op": "edit", "path": "root/v", "set": {"max": {"kube-queue/max-jobs": 1}}}], trees.Saving("test", now)
    )
    first = Job.objects.filter(name="first")
    for i in range(3):
        Job.objects.create(
            kind="PyTorchJob", namespace="vision", name=f"old-{i}", leaf="root/v", state="Succeeded", manifest={}, roles=[],
            total={}, created_at=now, queued_at=now, started_at=now - timedelta(hours=3), finished_at=now - timedelta(hours=2),
        )  # fmt: skip
    started = now - timedelta(minutes=20)
    first.update(charge={"kube-queue/max-jobs": 1}, state="Running", started_at=started)
    estimates.clear_cache()
    guess = as_editor.get(url("second")).json()["estimate"]
    assert guess["basis"] == "median of 3 finished jobs of root/v"
    assert abs(datetime.fromisoformat(guess["starts_at"]) - started - timedelta(hours=1)) < timedelta(seconds=10)


@pytest.mark.django_db
def test_it_hides_jobs_of_others(crowd, as_viewer):
    assert as_viewer.get(UNITS).json()["results"] == []
    assert as_viewer.get(url("first")).status_code == 404


@pytest.mark.django_db
def test_it_moves_a_job_into_a_queue_for_everybody(crowd, as_editor):
    moved = as_editor.post(url("first", "move/"), {"queue": Queue.objects.get(path="root/o").name}, format="json")
    assert moved.status_code == 200 and moved.json()["queue"] == "root/o"


@pytest.mark.django_db
@pytest.mark.parametrize(("queue", "status"), [("root/s", 403), ("root", 422), ("root/x", 422)])
def test_it_refuses_a_queue_that_is_not_theirs_or_none(crowd, as_editor, queue, status):
    assert as_editor.post(url("first", "move/"), {"queue": queue}, format="json").status_code == status


@pytest.mark.django_db
def test_it_lets_the_lead_of_a_queue_take_a_job_in(crowd):
    user = person("lea", (Grant.Role.EDITOR, "vision"))
    QuotaGrant.objects.create(user=user, path="root/s")
    assert client_of(user).post(url("first", "move/"), {"queue": "root/s"}, format="json").status_code == 200


@pytest.mark.django_db(transaction=True)
def test_it_shows_and_moves_them_with_kubectl(transactional_db, crowd, editor, tmp_path):
    with served(tmp_path) as kubectl:
        vera = kubectl.as_user("vera")
        header, *rows = vera.says("get", "qu", "-n", "vision").splitlines()
        assert header.split() == ["NAME", "PHASE", "POSITION", "AGE"]
        assert [row.split()[:3] for row in rows] == [
            ["first-pytorchjob", "Enqueued", "1"], ["second-pytorchjob", "Enqueued", "2"],
        ]  # fmt: skip
        patch = json.dumps({"spec": {"queue": "root/o"}})
        vera.says("patch", "queueunit", "first-pytorchjob", "-n", "vision", "--type=merge", "-p", patch)
        assert (
            json.loads(vera.says("get", "qu", "first-pytorchjob", "-n", "vision", "-ojson"))["spec"]["queue"]
            == "root/o"
        )


@pytest.mark.django_db
def test_it_counts_nobody_who_can_never_start_as_ahead_unless_the_queue_lets_nobody_pass(crowd, as_editor):
    def places() -> dict:
        shown = as_editor.get(f"{UNITS}?queue=root/v").json()["results"]
        return {each["name"]: (each["position"], each["ahead"]) for each in shown}

    Job.objects.filter(name="first").update(reason={"code": "NeverFits", "message": "too large"})
    assert places()["second"] == (1, "")
    block = [{"op": "edit", "path": "root/v", "set": {"attributes": {"queue-policy": "Block"}}}]
    trees.edit(block, trees.Saving("test", timezone.now()))
    assert places()["second"] == (2, "vision/first")


@pytest.mark.django_db
def test_it_guesses_nothing_where_the_clusters_are_in_the_way(crowd, as_editor):
    assert as_editor.get(url("second")).json()["estimate"]
    short = {"cluster": "north", "fits": False, "code": "NotEnoughFree", "message": "short", "short": {}, "score": 0}
    for reason in (
        {"code": "NoClusterFits", "message": "0/1", "clusters": [short]},
        {"code": "QuotaExceeded", "message": "no", "clusters": [short]},
        {"code": "NoPolicy", "message": "no"},
    ):
        Job.objects.filter(name="second").update(reason=reason)
        assert as_editor.get(url("second")).json()["estimate"] is None


@pytest.mark.django_db
def test_it_names_no_job_ahead_that_the_reader_may_not_see(crowd):
    Job.objects.filter(name="first").update(namespace="speech")
    reader = client_of(person("vic", (Grant.Role.VIEWER, "vision")))
    shown = reader.get(url("second")).json()
    assert (shown["position"], shown["ahead"]) == (2, "")
