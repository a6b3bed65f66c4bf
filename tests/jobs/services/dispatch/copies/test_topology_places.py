"""Where nodes are: by their labels, by the fleet's table, and the scheduler's picture that follows both."""

import pytest
import yaml
from django.utils import timezone

from fleet.errors import Forbidden, InvalidInput
from jobs.models import Dependent, Job
from jobs.services.scheduling.cache import SchedulerCache
from jobs.services.submission import manifests, submit
from jobs.services.submission.changes import actions
from jobs.snapshot_topology import whereabouts
from tests.support.books import a_cluster
from tests.support.world import pytorch_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def north(db):
    north = a_cluster("north", gpus=8)
    north.nodes.update(
        address="10.0.0.1", labels={"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/rack": "r"}
    )
    return north


def apply(text: str) -> None:
    submit.apply(manifests.parse(text.encode()), by="test", now=timezone.now())


def table(**entries: str) -> str:
    head = {"apiVersion": "v1", "kind": "ConfigMap"}
    return yaml.safe_dump(
        {**head, "metadata": {"name": "node-topology-config", "namespace": "kube-system"}, "data": entries}
    )


def place(north) -> tuple[str, ...]:
    return whereabouts().domain(north.nodes.get())


def test_a_nodes_labels_tell_its_place(north):
    assert place(north) == ("z", "", "r")


def test_the_table_tells_it_better_and_a_clusters_own_entry_best(north):
    apply(table(topology_config="asw-0 psw-0 10.0.0.1"))
    assert place(north) == ("z", "psw-0", "asw-0")
    apply(table(topology_config="asw-0 psw-0 10.0.0.1", north="a p 10.0.0.1", south="b q 10.0.0.1"))
    assert place(north) == ("z", "p", "a")


def test_a_cluster_may_have_labels_of_its_own(north):
    north.annotations = {"convoy.dev/topology-labels": "asw=topology.kubernetes.io/zone"}
    north.save(update_fields=["annotations"])
    assert place(north) == ("z", "", "z")


def test_a_table_with_a_line_that_is_none_is_refused(north):
    with pytest.raises(InvalidInput, match="line 1 must be three words"):
        apply(table(topology_config="asw-0 10.0.0.1"))


def test_the_pictures_nodes_move_with_the_table(north):
    cache = SchedulerCache()
    cache.refresh(timezone.now())
    apply(table(topology_config="asw-0 psw-0 10.0.0.1"))
    scheduler = cache.refresh(timezone.now())
    assert scheduler.places.engine.fleet.sites["north"].domains.keys() == {
        ("z",),
        ("z", "psw-0"),
        ("z", "psw-0", "asw-0"),
    }


def test_a_jobs_wish_is_kept_with_its_roles_and_a_strange_one_refused(db):
    wish = {"kueue.x-k8s.io/podset-required-topology": "topology.kubernetes.io/rack"}
    apply(pytorch_job("llama", **wish))
    assert Job.objects.get().roles[0]["needs"]["within"] == [2, True]
    with pytest.raises(InvalidInput, match="no level of the network"):
        apply(pytorch_job("other", **{"kueue.x-k8s.io/podset-required-topology": "row"}))


def test_a_table_in_dlrover_that_another_user_stored_before_the_upgrade_counts_once_an_admin_writes_it(north):
    guide = table(topology_config="asw-9 psw-9 10.0.0.1").replace("kube-system", "dlrover")
    manifest = yaml.safe_load(guide)
    metadata = {key: manifest["metadata"][key] for key in ("name", "namespace")}
    Dependent.objects.create(kind="ConfigMap", manifest=manifest, created_at=timezone.now(), **metadata)
    cache = SchedulerCache()
    cache.refresh(timezone.now())
    assert place(north) == ("z", "", "r")
    apply(guide)
    assert place(north)[1:] == ("psw-9", "asw-9")
    assert ("z", "psw-9") in cache.refresh(timezone.now()).places.engine.fleet.sites["north"].domains


def test_the_table_may_stand_where_the_guide_of_dlrover_has_it_and_that_of_the_clusters_goes_first(north):
    guide = table(topology_config="asw-9 psw-9 10.0.0.1").replace("kube-system", "dlrover")
    apply(guide)
    assert place(north)[1:] == ("psw-9", "asw-9")
    apply(table(topology_config="asw-1 psw-0 10.0.0.1"))
    assert place(north)[1:] == ("psw-0", "asw-1")


def test_only_a_fleet_admin_says_where_nodes_are_in_whatever_namespace(north, editor):
    guide = table(topology_config="asw-9 psw-9 10.0.0.1").replace("kube-system", "dlrover")
    with pytest.raises(Forbidden, match="a fleet admin writes it"):
        submit.apply(manifests.parse(guide.encode()), by=editor.username, now=timezone.now())
    apply(guide)
    with pytest.raises(Forbidden):
        actions.delete_dependent(Dependent.objects.get(), by=editor.username, now=timezone.now())
