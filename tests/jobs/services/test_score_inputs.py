"""Price, data, failures and weights decide between clusters that fit, through the doors people write them at."""

from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from jobs import snapshot
from jobs.core.policies import propagation as policies
from jobs.core.policies.preferences import PARTS
from jobs.models import Attempt, Binding, Job
from jobs.services.scheduling import loop
from jobs.services.submission import manifests, submit
from tests.support.books import a_cluster, apply, cycle, job
from tests.support.world import POLICY, pytorch_job

pytestmark = pytest.mark.django_db
A10 = {"nvidia.com/gpu.product": "A10"}


@pytest.fixture(autouse=True)
def clusters() -> None:
    """Two alike; without a preference the name decides for ``east``."""
    a_cluster("east"), a_cluster("west")


def labelled(client, cluster: str, **labels: str):
    return client.patch(f"/api/v1/clusters/{cluster}/", {"labels": labels}, content_type="application/json")


def weighted(weights: str) -> str:
    return POLICY.replace(
        "{name: example-policy}", f'{{name: p, annotations: {{convoy.dev/score-weights: "{weights}"}}}}'
    )


def near(data: str) -> str:
    body = yaml.safe_load(pytorch_job("llama", workers=0))
    body["metadata"]["annotations"] = {"convoy.dev/data": data}
    return yaml.safe_dump(body)


def parts_of(client, name: str) -> dict[str, dict[str, float]]:
    told = client.get(f"/api/v1/jobs/{job(name).uid}/explain/").json()
    return {each["cluster"]: each["parts"] for each in told["clusters"]}


def failed(cluster: str, times: int, ago: timedelta) -> None:
    for i in range(times):
        apply(pytorch_job(f"past-{cluster}-{i}-{ago.seconds}", workers=0))
        other = Job.objects.latest("pk")
        fields = {"placed_at": timezone.now(), "ended_at": timezone.now() - ago, "outcome": "Failed"}
        Attempt.objects.create(job=other, number=1, cluster_name=cluster, **fields)
        Job.objects.filter(pk=other.pk).update(state=Job.State.FAILED, attempt=1)


def placed(name: str, **fields) -> str:
    apply(pytorch_job(name, workers=0, **fields))
    cycle()
    return job(name).cluster.name


def test_without_a_preference_the_name_decides():
    assert placed("llama") == "east"


def test_it_goes_where_a_gpu_hour_is_cheaper_and_moves_with_the_label(as_admin):
    labelled(as_admin, "east", **{"convoy.dev/gpu-hour-cost": "4"})
    labelled(as_admin, "west", **{"convoy.dev/gpu-hour-cost": "1"})
    assert placed("llama") == "west"
    assert {name: parts["cost"] for name, parts in parts_of(as_admin, "llama").items()} == {"east": 0.25, "west": 1.0}
    labelled(as_admin, "east", **{"convoy.dev/gpu-hour-cost": "0.5"})
    assert placed("whisper") == "east"


def test_the_price_of_the_model_it_asks_for_counts(as_admin):
    labelled(as_admin, "east", **{"gpu-hour-cost.convoy.dev/H100": "2", "gpu-hour-cost.convoy.dev/A10": "9"})
    labelled(as_admin, "west", **{"gpu-hour-cost.convoy.dev/H100": "6", "gpu-hour-cost.convoy.dev/A10": "1"})
    for cluster in snapshot.Cluster.objects.all():
        one = cluster.nodes.get()
        one.labels = A10
        one.save(update_fields=["labels"])
    body = yaml.safe_load(pytorch_job("llama", workers=0))
    body["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["nodeSelector"] = A10
    apply(yaml.safe_dump(body))
    cycle()
    assert job("llama").cluster.name == "west"


@pytest.mark.parametrize("price", ["free", "-1", "0", "nan", "1e400"])
def test_a_price_that_is_none_is_refused_with_the_label(as_admin, price):
    answer = labelled(as_admin, "east", **{"convoy.dev/gpu-hour-cost": price})
    assert answer.status_code == 422 and "labels.convoy.dev/gpu-hour-cost" in answer.content.decode()


def test_it_goes_where_its_data_is(as_admin):
    labelled(as_admin, "west", **{"dataset": "imagenet"})
    apply(near("dataset=imagenet"))
    cycle()
    assert job("llama").cluster.name == "west"
    assert {name: parts["data"] for name, parts in parts_of(as_admin, "llama").items()} == {"east": 0.0, "west": 1.0}


def test_data_that_names_no_label_is_refused():
    with pytest.raises(Exception, match="convoy.dev/data"):
        submit.apply(manifests.parse(f"{POLICY}\n---\n{near('imagenet')}".encode()), by="test", now=timezone.now())


def test_it_avoids_where_jobs_failed_lately_and_forgets_with_time(as_admin):
    failed("east", 3, timedelta(minutes=1))
    assert placed("llama") == "west"
    assert parts_of(as_admin, "llama")["east"]["reliability"] == pytest.approx(1 / 4, abs=0.02)
    Attempt.objects.filter(outcome="Failed").update(ended_at=timezone.now() - timedelta(hours=13))
    assert snapshot.failures(timezone.now()) == {}


def test_one_job_that_fails_again_and_again_counts_once():
    failed("east", 1, timedelta())
    one = Attempt.objects.get(outcome="Failed")
    for number in range(2, 6):
        Attempt.objects.create(
            job=one.job,
            number=number,
            cluster_name="east",
            placed_at=one.placed_at,
            ended_at=one.ended_at,
            outcome="Failed",
        )
    assert snapshot.failures(timezone.now())["east"] == pytest.approx(1, abs=0.01)


def test_a_running_scheduler_hears_of_failures_between_cycles():
    assert placed("llama") == "east"
    failed("east", 3, timedelta())
    later = timezone.now() + timedelta(minutes=1)
    apply(pytorch_job("whisper", workers=0))
    loop.run(lambda: later)
    assert job("whisper").cluster.name == "west"


def test_the_policy_says_what_counts(as_admin):
    labelled(as_admin, "east", **{"convoy.dev/gpu-hour-cost": "4"})
    labelled(as_admin, "west", **{"convoy.dev/gpu-hour-cost": "1"})
    failed("west", 1, timedelta())
    assert placed("llama") == "east"
    text = f"{weighted('cost=10')}\n---\n{pytorch_job('whisper', workers=0)}"
    submit.apply(manifests.parse(f"{text}".encode()), by="test", now=timezone.now())
    Job.objects.filter(name="whisper").update(policy=snapshot.Policy.objects.get(name="p"))
    cycle()
    assert job("whisper").cluster.name == "west"


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_a_weight_that_a_policy_can_state(part):
    spec = policies.parse_propagation_policy(manifests.parse(weighted(f"{part}=7").encode())[0], snapshot.known_kinds())
    assert not spec.faults and dict(spec.score_weights) == {part: 7}


@pytest.mark.parametrize(
    "weights",
    ["speed=1", "cost", "cost=-1", "cost=nan", "cost=1e9", "cost=1,cost=2", ",".join(f"{p}=0" for p in PARTS)],
)
def test_weights_that_mean_nothing_are_refused_with_the_annotation(weights):
    spec = policies.parse_propagation_policy(manifests.parse(weighted(weights).encode())[0], snapshot.known_kinds())
    assert [fault.field for fault in spec.faults] == ["metadata.annotations.convoy.dev/score-weights"]


def test_it_learns_the_usual_pods_and_keeps_whole_nodes_for_them():
    """Pods of 8 GPUs are usual: one that asks 2 goes where less becomes useless to them, on the node that is broken already."""
    east = snapshot.Cluster.objects.get(name="east")
    offered = east.nodes.get().allocatable
    east.nodes.create(name="a-whole", ready=True, allocatable=offered)
    east.nodes.filter(name="node").update(requested={"nvidia.com/gpu": 5, "pods": 1})
    snapshot.Cluster.objects.filter(name="west").delete()
    assert snapshot.usual_pods() == ()
    for i in range(60):
        apply(pytorch_job(f"past-{i}", workers=0, gpus=8))
    Job.objects.update(state=Job.State.SUCCEEDED)
    [(ask, share)] = snapshot.usual_pods()
    assert (dict(ask.request)["nvidia.com/gpu"], share) == (8, 1.0)
    placed("small", gpus=2)
    assert Binding.objects.get(job=job("small")).placement["nodes"]["master"] == [["node", 1]]
