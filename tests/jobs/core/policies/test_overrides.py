"""Overrides: what is read and refused, and what becomes of a copy."""

import copy

import pytest
import yaml

from jobs.core.placement.types import Member
from jobs.core.policies import overrides
from jobs.core.policies.overrides import Image
from jobs.core.policies.overrides_apply import CannotOverride, Override, overridden, renamed
from jobs.kinds import registry

KNOWN = [("kubeflow.org/v1", "PyTorchJob")]
KIND = registry.kind_of(*KNOWN[0])
NORTH, SOUTH = Member("north", labels={"site": "eu"}), Member("south")
JOB = yaml.safe_load("""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llama, namespace: vision, labels: {team: vision}}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template: {spec: {containers: [{name: pytorch, image: "docker.io/a/train:v1", args: ["--fast", "--log"]}]}}
""")
CONTAINER = ("spec", "pytorchReplicaSpecs", "Master", "template", "spec", "containers", 0)


def policy(name: str = "p", namespace: str = "vision", selectors=None, clusters=None, **overriders) -> Override:
    rule = {"overriders": overriders, **({"targetCluster": clusters} if clusters else {})}
    spec = {"overrideRules": [rule], **({"resourceSelectors": selectors} if selectors else {})}
    read = overrides.parse_override_policy({"spec": spec}, KNOWN)
    assert read.faults == ()
    return Override(namespace, name, read)


def made(*policies: Override, cluster: Member = NORTH) -> dict:
    before = copy.deepcopy(JOB)
    found, _ = overridden(JOB, policies, cluster, KIND.templates)
    assert before == JOB
    return found


def container(*policies: Override) -> dict:
    found = made(*policies)
    for step in CONTAINER:
        found = found[step]
    return found


def image(component: str, operator: str, value: str = "") -> dict:
    return {"component": component, "operator": operator, **({"value": value} if value else {})}


@pytest.mark.parametrize(
    ("before", "step", "after"),
    [
        ("docker.io/a/b:v1", Image("Registry", "replace", "mirror.eu:5000"), "mirror.eu:5000/a/b:v1"),
        ("a/b", Image("Registry", "add", "mirror.eu"), "mirror.eu/a/b"),
        ("docker.io/a/b", Image("Registry", "remove"), "a/b"),
        ("a/b:v1", Image("Repository", "replace", "c"), "c:v1"),
        ("a/b", Image("Tag", "replace", "v2"), "a/b:v2"),
        ("a/b:v1", Image("Tag", "remove"), "a/b"),
        ("a/b@sha256:00", Image("Tag", "replace", "sha256:11"), "a/b@sha256:11"),
        ("localhost/b:v1", Image("Tag", "add", "-eu"), "localhost/b:v1-eu"),
    ],
)
def test_it_changes_one_part_of_an_image(before, step, after) -> None:
    assert renamed(before, step) == after


def test_it_changes_images_and_words_of_every_template() -> None:
    registry_of = policy(imageOverrider=[image("Registry", "replace", "mirror.eu")])
    words = policy(
        argsOverrider=[{"containerName": "pytorch", "operator": "remove", "value": ["--fast"]}],
        commandOverrider=[{"containerName": "pytorch", "operator": "add", "value": ["train"]}],
    )
    found = container(registry_of, words)
    assert (found["image"], found["args"], found["command"]) == ("mirror.eu/a/train:v1", ["--log"], ["train"])


def test_it_writes_labels_annotations_and_patches() -> None:
    found = made(
        policy(
            labelsOverrider=[{"operator": "replace", "value": {"team": "speech", "absent": "x"}}],
            annotationsOverrider=[{"operator": "add", "value": {"note": "1"}}],
            plaintext=[
                {"path": "/metadata/annotations/convoy~1x", "operator": "add", "value": "y"},
                {"path": "/spec/runPolicy", "operator": "add", "value": {"cleanPodPolicy": "None"}},
            ],
        )
    )
    assert found["metadata"]["labels"] == {"team": "speech"}
    assert found["metadata"]["annotations"] == {"note": "1", "convoy/x": "y"}
    assert found["spec"]["runPolicy"] == {"cleanPodPolicy": "None"}


def test_the_closest_policy_has_the_last_word() -> None:
    def label(name: str, namespace: str, job: str = "") -> Override:
        selectors = [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job}] if job else None
        return policy(name, namespace, selectors, labelsOverrider=[{"operator": "add", "value": {"said": name}}])

    wide, near = label("wide", ""), label("near", "vision")
    named, other = label("a-named", "vision", "llama"), label("z", "vision", "whisper")
    for order in ([wide, near, named, other], [named, other, near, wide]):
        assert made(*order)["metadata"]["labels"]["said"] == "a-named"
    assert made(near, wide)["metadata"]["labels"]["said"] == "near"
    assert made(label("x", "speech")) == JOB


def test_it_overrides_only_for_the_clusters_of_the_rule() -> None:
    only = policy(clusters={"labelSelector": {"matchLabels": {"site": "eu"}}}, imageOverrider=[image("Tag", "remove")])
    assert made(only) != JOB and made(only, cluster=SOUTH) == JOB


@pytest.mark.parametrize("path", ["/spec/none/deeper", "/spec/pytorchReplicaSpecs/Master/replicas/x", "/spec/absent"])
def test_it_says_what_does_not_apply(path) -> None:
    with pytest.raises(CannotOverride, match="OverridePolicy vision/p does not apply: .*leads nowhere"):
        made(policy(plaintext=[{"path": path, "operator": "replace", "value": 1}]))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.overrideRules"),
        ({"overrideRules": []}, "spec.overrideRules"),
        ({"overrideRules": [{"overriders": {}}]}, "spec.overrideRules[0].overriders"),
        ({"overriders": {"fieldOverrider": []}}, "spec.overriders.fieldOverrider"),
        ({"overriders": {"plaintext": [{"path": "/metadata/name", "operator": "replace", "value": "x"}]}}, "[0].path"),
        ({"overriders": {"plaintext": [{"path": "/spec/x", "operator": "add"}]}}, "plaintext[0].value"),
        ({"overriders": {"imageOverrider": [{"component": "Name", "operator": "add", "value": "x"}]}}, "component"),
        ({"overriders": {"imageOverrider": [{"component": "Tag", "operator": "add"}]}}, "imageOverrider[0].value"),
        ({"overriders": {"argsOverrider": [{"operator": "add", "value": ["a"]}]}}, "containerName"),
        ({"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": 1}}]}}, "labelsOverrider[0].value"),
        ({"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a b": "1"}}]}}, "value.a b"),
        ({"resourceSelectors": [{"kind": "Pod"}], "overriders": {}}, "spec.resourceSelectors[0]"),
        ({"dispatch": 1, "overriders": {}}, "spec.dispatch"),
    ],
    ids=str,
)
def test_it_refuses_what_can_never_act(spec, field) -> None:
    found = overrides.parse_override_policy({"spec": spec}, KNOWN).faults
    assert any(fault.field.endswith(field) for fault in found), found
