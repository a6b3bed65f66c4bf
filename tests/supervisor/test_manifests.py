"""The manifests grant what the supervisor uses, for every kind of job there is, and nothing else."""

from pathlib import Path

import yaml

from jobs.kinds import registry
from supervisor import lease

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
