"""The manifest grants what the agent uses, for every kind of job there is, and nothing else."""

import yaml

from agent.main import MANIFEST, main
from fleet.core.members import fence
from jobs.kinds import registry

DOCUMENTS = list(yaml.safe_load_all(MANIFEST.read_text()))


def of_kind(kind: str) -> dict:
    return next(document for document in DOCUMENTS if document["kind"] == kind)


def granted(kind: str) -> dict[tuple[str, str], set[str]]:
    rules = of_kind(kind)["rules"]
    return {
        (group, plural): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }


def test_it_may_stop_every_kind_of_job_and_nothing_else():
    kinds = registry.everything()
    commands = {("bus.volcano.sh", "commands"): {"create"}}
    jobs = {(kind.resource.group, kind.resource.plural): {"list", "patch"} for kind in kinds}
    assert granted("ClusterRole") == jobs | commands | {("", "pods"): {"list", "delete"}}


def test_its_lease_is_that_of_the_fleet():
    [create, named] = of_kind("Role")["rules"]
    assert create["verbs"] == ["create"] and named["resourceNames"] == [fence.NAME]
    assert {document["metadata"].get("namespace", fence.NAMESPACE) for document in DOCUMENTS} == {fence.NAMESPACE}


def test_it_is_printed_with_the_image_that_is_asked_for(capsys):
    assert main(["--manifest", "--image", "registry.example/convoy:2"]) == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    [container] = printed[-1]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/convoy:2" and printed[:-1] == DOCUMENTS[:-1]


def test_it_says_what_it_lacks_outside_of_a_pod(capsys, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert main([]) == 2
    assert "not in a pod: give --kubeconfig" in capsys.readouterr().err
