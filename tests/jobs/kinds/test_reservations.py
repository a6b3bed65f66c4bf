"""Reservations: one for each pod, named alike each time, and when a gang is held."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from fleet.core import fits, units
from fleet.core.fits import Offer
from fleet.core.members.marks import ATTEMPT, JOB_UID
from jobs.kinds import registry, reservations
from jobs.kinds.reservations import ROLE, Progress
from tests.support.world import pytorch_job

KIND = registry.kind_of("kubeflow.org/v1", "PyTorchJob")
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
MARKS = {JOB_UID: "12345678-0000-0000-0000-000000000000", ATTEMPT: "2"}
TTL = timedelta(minutes=10)
NAMES = ["default-llama-12345678-2-master-0", "default-llama-12345678-2-worker-0", "default-llama-12345678-2-worker-1"]


def wanted() -> list[dict]:
    made = yaml.safe_load(pytorch_job("llama"))
    made["metadata"]["namespace"] = "default"
    reservations.bind(KIND, made)
    return reservations.bodies(KIND, made, KIND.read(made).roles, MARKS, TTL)


def found(*phases: str) -> list[dict]:
    return [
        {"metadata": {"name": name}, "status": {"phase": phase}}
        for name, phase in zip(NAMES, phases, strict=False)
        if phase
    ]


def test_it_asks_for_one_a_pod_bound_to_the_job_the_attempt_and_the_role():
    bodies = wanted()
    assert [each["metadata"]["name"] for each in bodies] == NAMES == [each["metadata"]["name"] for each in wanted()]
    [owner] = bodies[1]["spec"]["owners"]
    assert owner["labelSelector"]["matchLabels"] == {**MARKS, ROLE: "worker"}
    assert bodies[1]["spec"]["template"]["metadata"]["labels"][ROLE] == "worker"
    assert bodies[1]["spec"]["ttl"] == "600s" and bodies[1]["spec"]["allocateOnce"]


@pytest.mark.parametrize(
    ("phases", "state", "told"),
    [
        (("Available", "Succeeded", "Available"), Progress.HELD, "3 of 3"),
        (("Available", "Pending", ""), Progress.PENDING, "1 of 3"),
        (("Available", "Failed", "Available"), Progress.LOST, "1 of 3"),
    ],
)
def test_a_gang_is_held_when_every_reservation_is_available_or_taken(phases, state, told):
    answer, words = reservations.progress(wanted(), found(*phases))
    assert answer is state and words.startswith(told)


def test_of_a_kind_whose_manifest_has_no_whole_pod_it_asks_what_the_kind_read():
    kind = registry.kind_of("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    made = yaml.safe_load((EXAMPLES / "sparkapplication.yaml").read_text())
    made["metadata"]["namespace"] = "default"
    kind.set_defaults(made)
    roles = kind.read(made).roles
    asked = [units.pod_request(each["spec"]["template"]["spec"]) for each in bodies_of(kind, made, roles)]
    assert asked == [role.request for role in roles for _ in range(role.replicas)]


def bodies_of(kind, made, roles):
    reservations.bind(kind, made)
    return reservations.bodies(kind, made, roles, MARKS, TTL)


def test_pods_name_the_scheduler_that_holds_their_room_unless_they_name_one():
    made = json.loads(json.dumps(yaml.safe_load(pytorch_job("llama"))))
    made["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "mine"
    reservations.bind(KIND, made, "koord-scheduler")
    named = {role: template["spec"].get("schedulerName") for role, template in KIND.templates(made)}
    assert named == {"master": "koord-scheduler", "worker": "mine"}


@pytest.mark.parametrize(
    ("label", "version", "scheduler", "served", "words"),
    [
        ("Reservation", "v1.28.0", "", True, ""),
        ("Reservation", "v1.31.2-aliyun.1", "kube-scheduler:v1.31.2-aliyun.6.8.0.1", True, ""),
        ("Reservation", "v1.31.0", "koord-scheduler:v1.6.0", True, ""),
        ("Reservation", "v1.27.9", "koord-scheduler:v1.6.0", True, "1.28 or later"),
        ("Reservation", "v1.30.1", "kube-scheduler:v1.30.1-aliyun.6.5.4.fcac2bdf", True, "6.5.4: holding reservations"),
        ("Reservation", "v1.31.0", "6.7.9", True, "takes 6.8.0 or later"),
        ("Reservation", "v1.31.0", "6.8.0", False, "does not serve"),
        ("NodeFit", "v1.20.2", "", False, ""),
        ("Guess", "v1.31.0", "", True, "must be one of auto, Aggregate, NodeFit, Reservation"),
    ],
)
def test_a_cluster_is_asked_only_for_a_fit_it_can_do(label, version, scheduler, served, words):
    told = [detail for _, detail in fits.faults({fits.FIT: label}, Offer(version, scheduler, served))]
    assert (words in told[0]) if words else told == []


@pytest.mark.parametrize(
    ("policy", "label", "scheduler", "fit"),
    [
        ("", "", "koord-scheduler:v1.6.0", "Reservation"),
        ("", "auto", "6.10.0", "Reservation"),
        ("", "", "", "NodeFit"),
        ("", "", "kube-scheduler:v1.31.0", "NodeFit"),
        ("", "NodeFit", "6.8.0", "NodeFit"),
        ("", "Aggregate", "6.8.0", "Aggregate"),
        ("Reservation", "NodeFit", "", "Reservation"),
        ("NodeFit", "Reservation", "6.8.0", "NodeFit"),
    ],
)
def test_the_policy_has_the_first_word_then_the_cluster_then_what_it_is_certain_to_hold(policy, label, scheduler, fit):
    labels = {fits.FIT: label} if label else {}
    assert fits.chosen(labels, Offer("v1.31.0", scheduler, served=True), policy) == fit
