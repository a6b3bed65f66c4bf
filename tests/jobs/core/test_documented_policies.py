"""What Karmada documents of overrides, cluster taints and affinities, held against what Convoy does with a batch Job."""

import pytest
import yaml

from jobs.core.placement.filters import permanent_refusal
from jobs.core.placement.types import Member
from jobs.core.policies import overrides, propagation
from jobs.core.policies.overrides_apply import CannotOverride, Override, overridden
from jobs.core.reasons import Code
from jobs.core.taints import Taint
from jobs.kinds import registry
from tests.jobs.core.builders import APIS, gang

KNOWN = [("batch/v1", "Job")]
MEMBER = Member(
    "member1", labels={"location": "us"}, places={"provider": "p1", "region": "r1", "zone": "z1"}, apis=APIS
)
JOB = yaml.safe_load("""
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default, labels: {bar: bar, foo: foo}}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: "registry.k8s.io/kube-state-metrics:v2.2.0", args: ["--port=1"], command: ["./run"]}
        - {name: side, image: "nginx@sha256:50d858e0985ecc7f60418aaf0cc5ab587f42c2570a884095a9e8ccacd0f6545c"}
""")


def written(text: str, member: Member = MEMBER) -> dict:
    read = overrides.parse_override_policy({"spec": {"overrideRules": [yaml.safe_load(text)]}}, KNOWN)
    assert read.faults == ()
    made, _ = overridden(JOB, [Override("default", "example", read)], member, registry.kind_of(*KNOWN[0]).templates)
    return made


def images(made: dict) -> list[str]:
    return [each["image"].partition("@")[0] for each in made["spec"]["template"]["spec"]["containers"]]


@pytest.mark.parametrize(
    ("step", "main", "side"),
    [
        (
            "{component: Registry, operator: replace, value: test-repo}",
            "test-repo/kube-state-metrics:v2.2.0",
            "test-repo/nginx",
        ),
        (
            "{component: Registry, operator: add, value: .cn}",
            "registry.k8s.io.cn/kube-state-metrics:v2.2.0",
            ".cn/nginx",
        ),
        ("{component: Registry, operator: remove}", "kube-state-metrics:v2.2.0", "nginx"),
        ("{component: Repository, operator: replace, value: busybox}", "registry.k8s.io/busybox:v2.2.0", "busybox"),
        (
            "{component: Repository, operator: add, value: -slim}",
            "registry.k8s.io/kube-state-metrics-slim:v2.2.0",
            "nginx-slim",
        ),
    ],
)
def test_it_overrides_images_as_documented(step: str, main: str, side: str) -> None:
    assert images(written(f"overriders: {{imageOverrider: [{step}]}}")) == [main, side]


def test_it_overrides_one_image_by_its_path() -> None:
    step = "{component: Tag, operator: replace, value: v3, predicate: {path: /spec/template/spec/containers/0/image}}"
    found = images(written(f"overriders: {{imageOverrider: [{step}]}}"))
    assert found == ["registry.k8s.io/kube-state-metrics:v3", "nginx"]


@pytest.mark.parametrize(
    ("overrider", "field", "words"),
    [
        ("argsOverrider: [{containerName: main, operator: add, value: [--debug]}]", "args", ["--port=1", "--debug"]),
        ("argsOverrider: [{containerName: main, operator: remove, value: [--port=1]}]", "args", []),
        ("commandOverrider: [{containerName: main, operator: add, value: [--help]}]", "command", ["./run", "--help"]),
    ],
)
def test_it_overrides_words_as_documented(overrider: str, field: str, words: list[str]) -> None:
    made = written(f"overriders: {{{overrider}}}")
    assert made["spec"]["template"]["spec"]["containers"][0][field] == words


@pytest.mark.parametrize(
    ("operator", "labels"),
    [
        ("add", {"bar": "test", "foo": "foo", "new": "test"}),
        ("replace", {"bar": "test", "foo": "foo"}),
        ("remove", {"foo": "foo"}),
    ],
)
def test_it_overrides_labels_and_annotations_as_documented(operator: str, labels: dict[str, str]) -> None:
    value = "{bar: test, new: test}"
    made = written(f"overriders: {{labelsOverrider: [{{operator: {operator}, value: {value}}}]}}")
    assert made["metadata"]["labels"] == labels


def test_it_patches_as_documented() -> None:
    patch = "{path: /metadata/annotations/example.com~1team, operator: add, value: vision}"
    assert written(f"overriders: {{plaintext: [{patch}]}}")["metadata"]["annotations"] == {"example.com/team": "vision"}
    with pytest.raises(CannotOverride, match="leads nowhere"):
        written("overriders: {plaintext: [{path: /spec/nothing/there, operator: replace, value: 1}]}")


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("{clusterNames: [member1]}", True),
        ("{clusterNames: [member2]}", False),
        ("{exclude: [member1]}", False),
        ("{labelSelector: {matchLabels: {location: us}}}", True),
        ("{fieldSelector: {matchExpressions: [{key: provider, operator: In, values: [p1]}]}}", True),
        ("{fieldSelector: {matchExpressions: [{key: zone, operator: NotIn, values: [z1]}]}}", False),
        ("{fieldSelector: {matchExpressions: [{key: region, operator: In, values: [r2]}]}}", False),
    ],
)
def test_it_selects_target_clusters_as_documented(target: str, meant: bool) -> None:
    rule = f"{{targetCluster: {target}, overriders: {{labelsOverrider: [{{operator: add, value: {{hit: 'yes'}}}}]}}}}"
    assert ("hit" in written(rule)["metadata"]["labels"]) is meant


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        ("{key: workload, operator: Equal, value: test, effect: NoSchedule}", Taint("workload", "NoSchedule", "test"), True),
        ("{key: workload, value: other, effect: NoSchedule}", Taint("workload", "NoSchedule", "test"), False),
        ("{key: workload, operator: Exists}", Taint("workload", "NoExecute", "test"), True),
        ("{key: workload, operator: Exists, effect: NoSchedule}", Taint("workload", "NoExecute"), False),
        ("{operator: Exists}", Taint("anything", "NoExecute"), True),
        ("{key: workload, operator: Exists, tolerationSeconds: 300}", Taint("workload", "NoExecute"), True),
        ("{key: other, operator: Exists}", Taint("workload", "PreferNoSchedule"), True),
    ],
)  # fmt: skip
def test_it_tolerates_cluster_taints_as_documented(toleration: str, taint: Taint, tolerated: bool) -> None:
    placement = {"clusterTolerations": [yaml.safe_load(toleration)]}
    selects = [{"apiVersion": "batch/v1", "kind": "Job"}]
    spec = propagation.parse_propagation_policy({"spec": {"resourceSelectors": selects, "placement": placement}}, KNOWN)
    asking = gang(api_version="batch/v1", kind="Job", policy=spec)
    tainted = Member("member1", taints=(taint,), apis=APIS)
    refused = permanent_refusal(asking, tainted, spec.affinities[0])
    assert (refused is None) is tolerated
    assert tolerated or refused[0] is Code.UNTOLERATED_TAINT
