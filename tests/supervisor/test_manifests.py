"""The manifests grant what the supervisor uses, for every kind of job there is, and nothing else."""

from pathlib import Path

import yaml

from fleet.services.members import member_addons
from jobs.kinds import registry
from jobs.services.dispatch.copies import progress_reports
from simulator import addons
from supervisor import lease, status_server

DOCUMENTS = list(yaml.safe_load_all(Path("deploy/supervisor-manifests/supervisor.yaml").read_text()))


def of_kind(kind: str) -> dict:
    return next(document for document in DOCUMENTS if document["kind"] == kind)


def test_it_is_the_deployment_that_the_seed_names():
    meta = of_kind("Deployment")["metadata"]
    assert (
        (meta["namespace"], meta["name"]) == ("arena-system", "elastic-job-supervisor") == (lease.NAMESPACE, lease.NAME)
    )


def test_it_may_record_on_and_suspend_every_kind_of_job():
    granted = {
        (group, plural): set(rule["verbs"])
        for rule in of_kind("ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    kinds = {(kind.resource.group, kind.resource.plural) for kind in registry.everything()}
    assert granted == {kind: {"get", "list", "patch"} for kind in kinds} | {
        ("", "pods"): {"get", "list", "watch", "patch", "delete"},
        ("", "nodes"): {"get", "list", "watch"},
    }


def test_it_has_no_right_to_secrets_or_to_create_pods():
    text = Path("deploy/supervisor-manifests/supervisor.yaml").read_text()
    assert "secrets" not in text and "'*'" not in text and '"*"' not in text


def test_the_fleet_and_a_simulated_member_can_create_all_that_they_hold():
    assert {document["kind"] for document in DOCUMENTS} <= set(member_addons._KINDS)
    assert [each["kind"] for each in addons.read(Path("deploy/supervisor-manifests/simulated.yaml"))][-1] == "Service"


def test_reports_are_taken_where_the_fleet_says_that_they_are():
    (port,) = of_kind("Service")["spec"]["ports"]
    container = of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]
    (volume,) = of_kind("Deployment")["spec"]["template"]["spec"]["volumes"]
    assert port["port"] == container["ports"][0]["containerPort"] == progress_reports.PORT == status_server.PORT
    assert of_kind("Service")["metadata"]["name"] == progress_reports.SERVICE
    assert (volume["secret"]["secretName"], volume["secret"]["optional"]) == (progress_reports.TLS, True)
