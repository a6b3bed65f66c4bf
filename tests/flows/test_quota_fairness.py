"""Two teams share a fleet: one borrows while the other is away; the other comes back. Watched from the doors people use."""

import pytest
import yaml
from django.utils import timezone

from fleet.services.authorization import access
from jobs.models import Job
from tests.cli.builders import Convoy
from tests.support.kubectl import served
from tests.support.people import client_of
from tests.support.quotas import GPU, PLENTY, apply_tree, gpus, leaf, ledger_is_exact
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db(transaction=True)
LABEL = "quota.scheduling.alibabacloud.com/name"


def job(name: str, team: str, duration: str = "10h") -> str:
    body = yaml.safe_load(pytorch_job(name, workers=1, duration=duration))
    body["metadata"] |= {"labels": {LABEL: team}, "annotations": {"convoy.dev/checkpoint-grace": "2"}}
    return yaml.safe_dump(body)


@pytest.fixture
def lent(unswept):
    """speech is promised four of eight GPUs and away; vision runs on all eight, in gangs of two."""
    unswept.member("north", 8)
    apply_tree(
        leaf("vision", **gpus(2, 8)),
        leaf("speech", **gpus(4, 8)),
        leaf("audio", **gpus(2, 8)),
        total={**PLENTY, GPU: 8},
    )
    unswept.apply(POLICY, *(job(f"vision-{i}", "vision") for i in range(3)), job("audio-0", "audio"))
    for name in ("vision-0", "vision-1", "vision-2", "audio-0"):
        unswept.expect(name, "Running")
    return unswept


def comes_back(world) -> list[Job]:
    """The owner's two jobs run; who had to leave for them."""
    world.apply(job("speech-0", "speech"), job("speech-1", "speech"))
    for name in ("speech-0", "speech-1"):
        world.expect(name, "Running")
    return list(Job.objects.filter(state__in=["Queued", "Reclaiming"]).order_by("name"))


def test_an_owner_gets_back_exactly_its_own_and_the_borrower_resumes_by_itself(lent):
    victims = comes_back(lent)
    assert len(victims) == 2 and {each.leaf for each in victims} == {"root/vision"}
    assert Job.objects.get(name="audio-0").attempt == 1 and ledger_is_exact()
    lent.finish("speech")
    for victim in victims:
        assert lent.expect(victim.name, "Running").attempt == 2
    assert not Job.objects.filter(name__startswith="speech").exclude(state="Succeeded").exists() and ledger_is_exact()


def test_a_victim_is_told_who_took_what_and_why_by_kubectl_rest_and_the_command_line(
    lent, admin, tmp_path, live_server
):
    victim = comes_back(lent)[0]
    taker, why = victim.reclaim["by"], "was promised its place: root/vision is "
    assert taker in ("default/speech-0", "default/speech-1")
    with served(tmp_path) as kubectl:
        described = kubectl.as_user("ada").says("describe", "pytorchjob", victim.name)
    assert f"{taker} of root/speech {why}" in described and "Reclaimed" in described
    client = client_of(admin)
    told = client.get(f"/api/v1/jobs/{victim.uid}/events/").json()
    assert f"{taker} of root/speech {why}" in str(told)
    convoy = Convoy(tmp_path, live_server.url)
    convoy.env["CONVOY_TOKEN"] = access.mint(admin, "test", life=None, now=timezone.now())[1]
    shown = convoy("describe", "pytorchjob", victim.name)
    assert f"{taker} of root/speech" in " ".join(shown.out.split()), shown.out + shown.err
