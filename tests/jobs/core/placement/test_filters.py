"""One gang on one cluster: every filter and the Aggregate fit, with the words and amounts people are told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.core.admission.placement_cache import PlacementCache
from jobs.core.gang import requirements
from jobs.core.policies.propagation import Affinity, PolicySpec
from jobs.core.reasons import Code
from jobs.core.taints import Taint, Toleration
from tests.jobs.core.builders import NOON, cluster, gang, node

DEAD = Taint("cluster.karmada.io/not-ready", "NoExecute")


def look(asked, site, affinity=None):
    if affinity:
        asked = replace(asked, policy=PolicySpec(affinities=(affinity,)))
    return PlacementCache([site]).verdicts("it", asked, (), NOON)[0]


def where(asked, *sites):
    return PlacementCache(sites).find_with_verdicts("it", asked, (), NOON)


def test_it_names_the_resource_and_the_amount_that_is_short():
    verdict = look(gang(workers=7, gpus=2), cluster("north", [node(8), node(8)], held_gpus=8))
    assert verdict.code is Code.NOT_ENOUGH_FREE and verdict.short == {"nvidia.com/gpu": 8}
    assert "short of 8 nvidia.com/gpu (asked 16 nvidia.com/gpu, free 8 nvidia.com/gpu)" in verdict.message


def test_it_says_when_even_an_empty_cluster_is_too_small():
    assert "even when empty" in look(gang(workers=20), cluster("north", [node(8)])).message


def test_it_refuses_a_cluster_without_the_scheduler_that_the_pods_name():
    pods = {"spec": {"schedulerName": "volcano"}}
    asked = replace(gang(), needs=requirements.parse_pod_requirements([("worker", 2, pods)]))
    verdict = look(asked, cluster("north", [node(8)]))
    assert verdict.code is Code.SCHEDULER_NOT_SERVED
    assert verdict.message == (
        "does not serve scheduling.volcano.sh/v1beta1 PodGroup, which schedulerName: volcano asks for"
    )


def test_it_subtracts_what_is_held():
    assert look(gang(workers=5), cluster("north", [node(8)], held_gpus=3)).short == {"nvidia.com/gpu": 1}


def test_it_refuses_a_pod_no_node_can_run_although_the_sum_is_enough():
    verdict = look(gang(masters=0, workers=2, gpus=8), cluster("north", [node(4)] * 8))
    assert verdict.code is Code.NO_NODE_FOR_POD and "8 nvidia.com/gpu" in verdict.message


def test_it_fits_nothing_on_a_cluster_without_nodes():
    assert look(gang(), cluster("north", [])).code is Code.NO_NODE_FOR_POD


def test_it_never_counts_an_overcommitted_node_as_room():
    assert look(gang(masters=0, workers=1), cluster("north", [node(-3)])).short == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cordoned": True}, Code.CORDONED),
        ({"ready": False}, Code.NOT_READY),
        ({"synced": False}, Code.CAPACITY_UNKNOWN),
        ({"apis": {}}, Code.KIND_NOT_SERVED),
        ({"taints": (DEAD,)}, Code.UNTOLERATED_TAINT),
    ],
)
def test_it_filters_a_cluster_by_name_of_the_filter(fields, code):
    assert look(gang(), cluster(**fields)).code is code


def test_it_accepts_a_tainted_cluster_the_policy_tolerates():
    policy = PolicySpec(tolerations=(Toleration(operator="Exists"),))
    assert look(gang(policy=policy), cluster(taints=(DEAD,))).fits


def test_it_excludes_a_cluster_the_job_failed_on_until_the_cool_off_is_over():
    excluded = {"north": NOON + timedelta(seconds=1)}
    assert look(gang(excluded=excluded), cluster("north")).code is Code.FAILED_HERE
    assert look(gang(excluded={"north": NOON}), cluster("north")).fits


def test_it_asks_for_a_resource_nobody_offers():
    asked = gang(roles=(("worker", 1, {"amd.com/gpu": 1, "pods": 1}),), total={"amd.com/gpu": 1, "pods": 1})
    assert look(asked, cluster()).short == {"amd.com/gpu": 1}


def test_it_fills_the_fuller_cluster_first_and_goes_by_name_between_equals():
    spot = where(gang(), cluster("south", [node(8)]), cluster("north", [node(8)]), cluster("busy", [node(8), node(0)]))
    assert [v.cluster for v in spot.verdicts] == ["busy", "north", "south"]


def test_it_asks_the_next_affinity_term_only_when_the_one_before_fits_nowhere():
    policy = PolicySpec(affinities=(Affinity(names=("small",)), Affinity(names=("north",))))
    clusters = [cluster("north"), cluster("small", [node(1)]), cluster("other")]
    assert where(gang(policy=policy), *clusters).cluster == "north"


@pytest.mark.parametrize(
    ("affinity", "allowed"),
    [
        (Affinity(names=("north",)), True),
        (Affinity(exclude=("north",)), False),
        (Affinity(labels={"matchLabels": {"tier": "a"}}), True),
        (Affinity(labels={"matchLabels": {"tier": "b"}}), False),
        (Affinity(fields=({"key": "region", "operator": "In", "values": ["eu"]},)), True),
        (Affinity(fields=({"key": "region", "operator": "NotIn", "values": ["eu"]},)), False),
    ],
)
def test_it_selects_clusters_by_name_label_and_place(affinity, allowed):
    member = cluster("north", labels={"tier": "a"}, places={"region": "eu"})
    assert look(gang(), member, affinity).fits is allowed
