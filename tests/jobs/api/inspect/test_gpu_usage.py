"""What GPUs do, by cluster, node and job, and who leaves them idle; each only as the reader may know it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from fleet.core.gpu_readings import Reading
from fleet.db import clock
from fleet.models import Cluster, GpuScrape, NodeReading
from fleet.services.gpus import storing
from jobs.core.series.catalogue import Dimension, Key, Metric
from jobs.models import Job
from jobs.services.gpus import idle, usage
from jobs.services.series import samples
from tests.support.books import GPU, a_cluster

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def gpu(number: int, utilization: float | None, pod: str = "llama-worker-0", **fields: Any) -> Reading:
    return Reading(str(number), utilization=utilization, namespace="vision", pod=pod, **fields)


def measure(cluster: Cluster, *gpus: Reading, at: datetime | None = None, node: str = "node") -> None:
    storing.store(cluster, {node: list(gpus)}, at or clock.now())


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the test takes, and however late in a run it comes, the readings stay fresh."""
    began = timezone.now().replace(second=0, microsecond=0)
    monkeypatch.setattr(clock, "now", lambda: began)


@pytest.fixture
def llama(db: None) -> Job:
    """A job of vision with a pod of two GPUs on the node of north, since three hours."""
    north = a_cluster("north", gpus=8)
    role = {"name": "Worker", "replicas": 1, "request": {GPU: 2}}
    job = Job.objects.create(
        kind="PyTorchJob", api_version="kubeflow.org/v1", namespace="vision", name="llama", manifest={}, roles=[role],
        total={GPU: 2}, gpus=2, leaf="root/vision", created_at=clock.now(), queued_at=clock.now(), cluster=north,
        state="Running",
    )  # fmt: skip
    north.pods.create(
        namespace="vision", name="llama-worker-0", uid="u", job_uid=job.uid, attempt=1, role="Worker", node="node",
        phase="Running", created_at=clock.now(), started_at=clock.now() - 3 * HOUR,
    )  # fmt: skip
    return job


def test_it_shows_what_each_gpu_of_a_node_does_and_whose_it_is(as_admin, llama):
    measure(llama.cluster, gpu(0, 90, memory_used=60, memory_total=80, power=300, temperature=60), gpu(1, 0, pod=""))
    [node] = as_admin.get("/api/v1/gpu-usage/clusters/north/").json()["nodes"]
    first, second = node["gpus"]
    assert (first["utilization"], first["memory_used"], first["power"], first["temperature"]) == (90, 60, 300, 60)
    assert (first["id"], first["name"], first["pod"]) == (str(llama.uid), "llama", "llama-worker-0")
    assert (second["id"], second["pod"], second["utilization"], second["memory_used"]) == ("", "", 0, None)


def test_it_names_no_job_that_the_reader_may_not_read(as_viewer, llama):
    measure(llama.cluster, gpu(0, 1), at=clock.now() - HOUR + timedelta(minutes=1))
    measure(llama.cluster, gpu(0, 1))
    answer = as_viewer.get("/api/v1/gpu-usage/clusters/north/").content.decode()
    assert "utilization" in answer and "llama" not in answer and "vision" not in answer
    assert as_viewer.get("/api/v1/gpu-usage/jobs/").json()["results"] == []
    assert as_viewer.get("/api/v1/gpu-usage/idle/").json()["results"] == []
    assert as_viewer.get(f"/api/v1/jobs/{llama.uid}/gpu-usage/").status_code == 404


def test_an_exporters_word_counts_only_where_such_a_pod_is(as_admin, llama):
    measure(llama.cluster, gpu(0, 90), node="elsewhere")
    measure(llama.cluster, gpu(0, 90, pod="made-up"))
    gpus = [each for node in as_admin.get("/api/v1/gpu-usage/clusters/north/").json()["nodes"] for each in node["gpus"]]
    assert [(each["id"], each["pod"]) for each in gpus] == [("", ""), ("", "")]
    assert as_admin.get("/api/v1/gpu-usage/jobs/").json()["results"] == []


def test_a_reading_of_before_the_clock_was_set_back_says_nothing_of_now(llama):
    early = clock.now() - timedelta(hours=1)
    assert not usage.fresh(early).exists() and not usage.of_clusters(early)[0].measured


def test_it_sums_up_jobs_and_clusters(as_admin, llama, django_assert_max_num_queries):
    measure(llama.cluster, gpu(0, 90, memory_used=60, power=300), gpu(1, 10, power=100), gpu(2, None, pod=""))
    GpuScrape.objects.create(
        cluster=llama.cluster, due_at=clock.now(), read_at=clock.now(), exporters=2, answered=1, message="node b: no"
    )
    a_cluster("south", gpus=8)
    with django_assert_max_num_queries(12):
        [job] = as_admin.get("/api/v1/gpu-usage/jobs/").json()["results"]
    assert (job["name"], job["gpus"], job["utilization"], job["memory_used"], job["power"]) == ("llama", 2, 50, 60, 400)
    north, south = as_admin.get("/api/v1/gpu-usage/").json()["results"]
    assert (north["measured"], north["utilization"], north["answered"], north["message"]) == (2, 50, 1, "node b: no")
    assert (south["measured"], south["utilization"], south["read_at"]) == (0, None, None)
    taken = samples.take(clock.now())
    assert (
        taken[Key(Metric.UTILIZATION, Dimension.FLEET)]
        == taken[Key(Metric.UTILIZATION, Dimension.CLUSTER, "north")]
        == 50
    )
    assert Key(Metric.UTILIZATION, Dimension.CLUSTER, "south") not in taken
    page = as_admin.get("/metrics").content.decode()
    assert 'convoy_gpu_utilization_ratio{cluster="north"} 0.5' in page and 'ratio{cluster="south"}' not in page


def test_a_job_shows_its_gpus_over_time_since_its_pods_started(as_admin, llama):
    for minutes, use in ((200, 7), (2, 80), (1, 90), (0, 100)):
        measure(llama.cluster, gpu(0, use), at=clock.now() - timedelta(minutes=minutes))
    answer = as_admin.get(f"/api/v1/jobs/{llama.uid}/gpu-usage/?hours=72").json()
    [each] = answer["gpus"]
    assert (each["pod"], each["role"], each["node"], each["utilization"]) == ("llama-worker-0", "Worker", "node", 100)
    [line], start, step = answer["history"]["lines"], answer["history"]["start"], answer["history"]["step"]
    assert (start, step) == (int((clock.now() - 3 * HOUR).timestamp()), 60)
    assert line["values"][-3:] == [80, 90, 100] and set(line["values"][:-3]) == {None}


def test_only_nodes_with_pods_of_the_readers_namespaces_are_read(llama):
    for number in range(3):
        measure(llama.cluster, gpu(0, 1, pod="x"), at=clock.now(), node=f"other{number}")
    measure(llama.cluster, gpu(0, 1))
    assert [row.node for row in usage.of_namespaces(usage.fresh(clock.now()), frozenset({"vision"}))] == ["node"]
    assert usage.of_namespaces(usage.fresh(clock.now()), frozenset({"speech"})).count() == 0
    assert usage.of_namespaces(usage.fresh(clock.now()), None).count() == 4
    assert [use.job.name for use in usage.of_jobs(frozenset({"vision"}), clock.now())] == ["llama"]
    [use] = usage.join(usage.fresh(clock.now()).filter(node="node"), frozenset({"speech"}))
    assert use.pod is None


def test_a_history_takes_only_the_gpus_that_are_asked_for(llama):
    measure(llama.cluster, gpu(0, 1), gpu(1, 2))
    use = usage.GpuUse(
        "north", "node", clock.now(), gpu(1, 2), usage.PodOfJob(llama.uid, "v", "p", "w", 0, clock.now() - HOUR)
    )
    assert list(usage._minutes([use], 0)) == [("north", "node", "1")]


def test_longer_histories_have_longer_steps(llama):
    use = usage.GpuUse(
        "north", "node", clock.now(), gpu(0, 1), usage.PodOfJob(llama.uid, "v", "p", "w", 0, clock.now() - 200 * HOUR)
    )
    history = usage.history([use] * 70, clock.now(), 72 * HOUR)
    values = [len(line.values) for line in history.lines]
    assert history.step == 15 * 60 and sum(values) <= usage.MOST_VALUES and len(values) == usage.MOST_GPUS


@pytest.mark.parametrize("hours", ["0", "73", "-1", "x", "1e9", "٣"])
def test_it_names_hours_that_make_no_sense(as_admin, llama, hours):
    answer = as_admin.get(f"/api/v1/jobs/{llama.uid}/gpu-usage/", {"hours": hours})
    assert answer.status_code == 422 and "hours" in answer.json()["detail"]


def left_idle(job: Job, minutes: int, *, until: datetime | None = None, gpus: int = 2) -> None:
    until = until or clock.now()
    for ago in range(minutes, -1, -1):
        measure(job.cluster, *(gpu(number, 1) for number in range(gpus)), at=until - timedelta(minutes=ago))


def test_a_job_that_leaves_its_gpus_idle_is_listed_with_what_that_costs(as_admin, llama):
    left_idle(llama, 40)
    answer = as_admin.get("/api/v1/gpu-usage/idle/").json()
    [row] = answer["results"]
    assert (row["namespace"], row["name"], row["queue"], row["cluster"]) == ("vision", "llama", "root/vision", "north")
    assert (row["idle_gpus"], row["gpus"], row["gpu_hours"]) == (2, 2, round(2 * 40 / 60, 2))
    assert (answer["minutes"], answer["percent"], answer["is_cut"]) == (30, 5, False)


def test_it_lists_no_job_that_is_not_idle_for_so_long_or_not_measured(llama):
    left_idle(llama, 20)
    assert idle.find(None, clock.now()).jobs == []
    left_idle(llama, 40)
    assert len(idle.find(None, clock.now()).jobs) == 1
    # Its readings have stopped: it is not known what it does.
    assert idle.find(None, clock.now() + storing.freshness() + timedelta(seconds=1)).jobs == []
    measure(llama.cluster, gpu(0, 70), gpu(1, None))
    assert idle.find(None, clock.now()).jobs == []


def test_a_gap_in_the_readings_begins_the_time_anew(llama):
    left_idle(llama, 40, until=clock.now() - HOUR)
    left_idle(llama, 5)
    assert idle.find(None, clock.now()).jobs == []


def test_it_lists_only_jobs_that_run(llama):
    left_idle(llama, 40)
    Job.objects.update(state=Job.State.RECLAIMING)
    assert idle.find(None, clock.now()).jobs == []


def test_what_wastes_most_comes_first_and_the_settings_decide(llama, settings):
    left_idle(llama, 40, gpus=1)
    assert [row.idle_gpus for row in idle.find(None, clock.now()).jobs] == [1]
    settings.CONVOY_GPUS = type(settings.CONVOY_GPUS)(idle_s=3600)
    assert idle.find(None, clock.now()).jobs == []
    assert NodeReading.objects.count() == 1


def test_teams_and_queues_have_what_is_allocated_used_and_idle(as_admin, as_viewer, llama):
    other = Job.objects.get()
    other.pk, other.uid, other.name, other.namespace, other.leaf, other.gpus = None, uuid4(), "mist", "speech", "", 4
    other.save()
    measure(llama.cluster, gpu(0, 90), gpu(1, 2), gpu(2, 50, pod=""), at=clock.now() - timedelta(minutes=40))
    measure(llama.cluster, gpu(0, 90), gpu(1, 2), gpu(2, 50, pod=""))
    speech = {"name": "speech", "gpus": 4, "measured": 0, "utilization": None, "idle": 0}
    vision = {"name": "vision", "gpus": 2, "measured": 2, "utilization": 46, "idle": 0}
    answer = as_admin.get("/api/v1/gpu-usage/groups/").json()["results"]
    assert answer == [speech, vision], "a reading that stayed away for so long began the idle time anew"
    llama_in_queue = vision | {"name": "root/vision"}
    assert as_admin.get("/api/v1/gpu-usage/groups/?by=queue").json()["results"] == [
        speech | {"name": ""},
        llama_in_queue,
    ]
    assert as_viewer.get("/api/v1/gpu-usage/groups/").json()["results"] == [speech], "sam reads speech alone"
    assert as_admin.get("/api/v1/gpu-usage/groups/?by=user").status_code == 422
    NodeReading.objects.update(at=clock.now() - HOUR)
    assert as_admin.get("/api/v1/gpu-usage/groups/").json()["results"][1]["utilization"] is None


def test_a_gpu_of_a_team_that_stays_idle_is_counted_as_idle(as_admin, llama, settings):
    settings.CONVOY_GPUS = replace(settings.CONVOY_GPUS, interval_s=3600)
    for ago in (40, 0):
        measure(llama.cluster, gpu(0, 90), gpu(1, 2), at=clock.now() - timedelta(minutes=ago))
    [vision] = as_admin.get("/api/v1/gpu-usage/groups/").json()["results"]
    assert (vision["idle"], vision["gpus"]) == (1, 2)
