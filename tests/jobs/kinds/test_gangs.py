"""How a gang is told to a member, by what the member serves."""

import copy

import pytest
import yaml

from fleet.kube.resources import POD_GROUPS, RESERVATIONS, SIGS_POD_GROUPS, VOLCANO_POD_GROUPS
from jobs.kinds import gangs, registry
from jobs.kinds.base import marked

KIND = registry.kind_of("kubeflow.org/v1", "TFJob")
TEMPLATE = "{spec: {containers: [{name: tensorflow, image: x, resources: {limits: {nvidia.com/gpu: 1, cpu: 500m}}}]}}"
JOB = yaml.safe_load(f"""
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {{name: mnist, namespace: ai, annotations: {{volcano.sh/task-topology-affinity: "ps,worker", other: x}}}}
spec:
  tfReplicaSpecs:
    PS: {{replicas: 1, template: {TEMPLATE}}}
    Worker: {{replicas: 2, template: {TEMPLATE}}}
""")


def told(*served, scheduler: str = "", **spec: object):
    job = copy.deepcopy(JOB)
    job["spec"] |= {**spec, **({"schedulerName": scheduler} if scheduler else {})}
    made = marked(KIND, job, {"mark": "1"})
    has = {(each.api_version, each.kind) for each in served}
    group = gangs.bind(KIND, made, KIND.read(job), lambda api, kind: (api, kind) in has)
    return group, [template for _, template in KIND.templates(made)]


def test_it_uses_the_pod_group_of_scheduler_plugins_first():
    group, templates = told(POD_GROUPS, VOLCANO_POD_GROUPS, RESERVATIONS)
    assert group is not None and group[0] == POD_GROUPS and group[1]["spec"] == {"minMember": 3}
    assert group[1]["metadata"] == {"name": "mnist", "namespace": "ai", "labels": {"mark": "1"}}
    assert all(t["metadata"]["labels"][gangs.LABEL] == "mnist" for t in templates)


@pytest.mark.parametrize(
    ("served", "scheduler"), [((POD_GROUPS, VOLCANO_POD_GROUPS), "volcano"), ((VOLCANO_POD_GROUPS,), "")]
)
def test_it_uses_volcano_where_the_job_asks_for_it_or_nothing_else_is_there(served, scheduler):
    group, templates = told(*served, scheduler=scheduler)
    assert group is not None and group[0] == VOLCANO_POD_GROUPS
    asked = {"cpu": "1500m", "nvidia.com/gpu": "3"}
    assert group[1]["spec"] == {"minMember": 3, "minResources": asked}
    assert group[1]["metadata"]["annotations"] == {"volcano.sh/task-topology-affinity": "ps,worker"}
    assert [t["spec"]["schedulerName"] for t in templates] == ["volcano", "volcano"]
    notes = [t["metadata"]["annotations"] for t in templates]
    assert [(n[gangs.VOLCANO_GROUP], n[gangs.VOLCANO_ROLE]) for n in notes] == [("mnist", "ps"), ("mnist", "worker")]


def test_it_tells_volcano_the_least_number_and_what_those_ask_and_the_queue():
    policy = {"schedulingPolicy": {"minAvailable": 2, "queue": "vision"}}
    group, _ = told(VOLCANO_POD_GROUPS, runPolicy=policy)
    assert group is not None
    asked = {"cpu": "1000m", "nvidia.com/gpu": "2"}
    assert group[1]["spec"] == {"minMember": 2, "minResources": asked, "queue": "vision"}


def test_it_annotates_the_pods_for_koordinator():
    group, templates = told(RESERVATIONS)
    assert group is None
    gang = {"name": "mnist", "min-available": "3", "total-number": "3"}
    wanted = {f"gang.scheduling.koordinator.sh/{key}": value for key, value in gang.items()}
    assert [t["metadata"]["annotations"] for t in templates] == [wanted, wanted]


def test_it_leaves_a_gang_alone_that_a_person_wrote_for_koordinator():
    roles = copy.deepcopy(JOB["spec"]["tfReplicaSpecs"])
    own = {"gang.scheduling.koordinator.sh/name": "mine"}
    roles["Worker"]["template"]["metadata"] = {"annotations": own}
    group, templates = told(POD_GROUPS, RESERVATIONS, tfReplicaSpecs=roles)
    assert group is None and templates[1]["metadata"]["annotations"] == own


def test_it_makes_no_gang_of_one_pod_nor_where_nothing_knows_gangs():
    roles = {"Worker": {**JOB["spec"]["tfReplicaSpecs"]["Worker"], "replicas": 1}}
    assert told(POD_GROUPS, tfReplicaSpecs=roles)[0] is None
    assert told()[0] is None


def test_the_former_group_of_scheduler_plugins_is_used_where_nothing_newer_is_served():
    group, templates = told(SIGS_POD_GROUPS)
    assert group is not None and group[0] == SIGS_POD_GROUPS and group[1]["spec"] == {"minMember": 3}
    assert all(t["metadata"]["labels"][gangs.SIGS_LABEL] == "mnist" for t in templates)


def test_pods_of_a_person_that_name_their_own_pod_group_are_left_alone():
    roles = copy.deepcopy(JOB["spec"]["tfReplicaSpecs"])
    for role in roles.values():
        role["template"]["metadata"] = {"labels": {gangs.SIGS_LABEL: "mine"}}
    assert told(POD_GROUPS, SIGS_POD_GROUPS, tfReplicaSpecs=roles)[0] is None


def test_pods_of_scheduler_plugins_name_their_scheduler_where_it_is_not_the_default_one():
    job = copy.deepcopy(JOB)
    job["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["schedulerName"] = "theirs"
    made = marked(KIND, job, {"mark": "1"})
    serves = {(POD_GROUPS.api_version, POD_GROUPS.kind)}
    gangs.bind(KIND, made, KIND.read(job), lambda api, kind: (api, kind) in serves, "scheduler-plugins-scheduler")
    named = {role: template["spec"]["schedulerName"] for role, template in KIND.templates(made)}
    assert named == {"ps": "theirs", "worker": "scheduler-plugins-scheduler"}
