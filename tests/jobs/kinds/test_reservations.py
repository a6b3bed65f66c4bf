"""Reservations: one for each pod, named alike each time, and when a gang is held."""

import pytest
import yaml

from fleet.core import fits
from fleet.core.marks import ATTEMPT, JOB_UID
from jobs.kinds import registry, reservations
from jobs.kinds.reservations import ROLE, Progress
from tests.support.world import pytorch_job

KIND = registry.of("kubeflow.org/v1", "PyTorchJob")
MARKS = {JOB_UID: "12345678-0000-0000-0000-000000000000", ATTEMPT: "2"}
NAMES = ["default-llama-12345678-2-master-0", "default-llama-12345678-2-worker-0", "default-llama-12345678-2-worker-1"]


def wanted() -> list[dict]:
    made = yaml.safe_load(pytorch_job("llama"))
    made["metadata"]["namespace"] = "default"
    reservations.bind(KIND, made)
    return reservations.bodies(KIND, made, {"master": 1, "worker": 2}, MARKS)


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


@pytest.mark.parametrize(
    ("label", "version", "served", "words"),
    [
        ("Reservation", "v1.28.0", True, ""),
        ("Reservation", "v1.31.2-aliyun.1", True, ""),
        ("Reservation", "v1.27.9", True, "1.28 or later"),
        ("Reservation", "v1.31.0", False, "does not serve"),
        ("NodeFit", "v1.20.2", False, ""),
        ("Guess", "v1.31.0", True, "must be one of Aggregate, NodeFit, Reservation"),
    ],
)
def test_a_cluster_is_asked_only_for_a_fit_it_can_do(label, version, served, words):
    told = [detail for _, detail in fits.faults({fits.FIT: label}, version, served=served)]
    assert (words in told[0]) if words else told == []
