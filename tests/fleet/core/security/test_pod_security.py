"""Each rule of the Pod Security Standards by what it refuses and what it lets through, with the field that is named."""

from typing import Any

import pytest

from fleet.core.security.pod_security import Level, Profile, of_json_patch, violations

BASELINE, RESTRICTED = Profile(), Profile(level=Level.RESTRICTED)
CONTAINER = "spec.template.spec.containers[0]"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"
SAFE_CONTAINER = {
    "name": "c",
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}


def workload(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    pod = {"containers": [{"name": "c", "image": "x", **(container or {})}], **spec}
    return {"kind": "Any", "metadata": {"name": "a"}, "spec": {"template": {"spec": pod}}}


def secured(**fields: Any) -> dict[str, Any]:
    return {"securityContext": fields}


def fields(document: Any, profile: Profile = BASELINE, **how: Any) -> list[str]:
    return [violation.field for violation in violations(document, profile, **how)]


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (workload(hostNetwork=True), "spec.template.spec.hostNetwork"),
        (workload(hostPID=True), "spec.template.spec.hostPID"),
        (workload(hostIPC="true"), "spec.template.spec.hostIPC"),
        (workload(secured(privileged=True)), f"{CONTAINER}.securityContext.privileged"),
        (
            workload(secured(capabilities={"add": ["CHOWN", "SYS_ADMIN"]})),
            f"{CONTAINER}.securityContext.capabilities.add[1]",
        ),
        (workload(secured(capabilities={"add": ["ALL"]})), f"{CONTAINER}.securityContext.capabilities.add[0]"),
        (workload(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "spec.template.spec.volumes[0].hostPath"),
        (workload({"ports": [{"containerPort": 80, "hostPort": 80}]}), f"{CONTAINER}.ports[0].hostPort"),
        (workload(secured(procMount="Unmasked")), f"{CONTAINER}.securityContext.procMount"),
        (
            workload(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            "spec.template.spec.securityContext.seccompProfile.type",
        ),
        (
            workload(secured(appArmorProfile={"type": "Unconfined"})),
            f"{CONTAINER}.securityContext.appArmorProfile.type",
        ),
        (
            workload(secured(seLinuxOptions={"type": "spc_t", "role": "r"})),
            f"{CONTAINER}.securityContext.seLinuxOptions.type",
        ),
        (
            workload(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            "spec.template.spec.securityContext.sysctls[0].name",
        ),
        (
            workload(securityContext={"windowsOptions": {"hostProcess": True}}),
            "spec.template.spec.securityContext.windowsOptions.hostProcess",
        ),
        (workload({"livenessProbe": {"httpGet": {"host": "10.0.0.1"}}}), f"{CONTAINER}.livenessProbe.httpGet.host"),
        (workload(nodeName="n1"), "spec.template.spec.nodeName"),
        (
            {"spec": {"template": {"metadata": {"annotations": {APPARMOR: "unconfined"}}}}},
            f"spec.template.metadata.annotations.{APPARMOR}",
        ),
        (
            workload(initContainers=[{"name": "i", **secured(privileged=True)}]),
            "spec.template.spec.initContainers[0].securityContext.privileged",
        ),
        (
            workload(ephemeralContainers=[{"name": "i", **secured(privileged=True)}]),
            "spec.template.spec.ephemeralContainers[0].securityContext.privileged",
        ),
        ({"spec": {"driver": {"hostNetwork": True}}}, "spec.driver.hostNetwork"),
        (
            {"spec": {"sparkConf": {"spark.kubernetes.executor.volumes.hostPath.x.mount.path": "/"}}},
            "spec.sparkConf.spark.kubernetes.executor.volumes.hostPath.x.mount.path",
        ),
        ({"spec": {"a": [[{"hostPID": True}]]}}, "spec.a[0][0].hostPID"),
    ],
)  # fmt: skip
def test_baseline_names_the_field_it_refuses(document: Any, field: str) -> None:
    assert field in fields(document)
    assert field in fields(document, RESTRICTED)
    assert fields(document, Profile(level=Level.PRIVILEGED)) == []


@pytest.mark.parametrize(
    "document",
    [
        workload(),
        workload(secured(privileged=False, procMount="Default", capabilities={"add": ["NET_BIND_SERVICE", "KILL"]})),
        workload(hostNetwork=False, serviceAccountName="trainer", securityContext=None, volumes=None),
        workload(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies"}], "runAsUser": 0}),
        workload({"livenessProbe": {"httpGet": {"path": "/"}}, "ports": [{"hostPort": 0}]}),
        {"spec": {"template": {"metadata": {"labels": {"privileged": "true", "nodeName": "x"}}}}},
        {"kind": "ConfigMap", "data": {"privileged": "true", "hostPath": "/"}},
        workload(nodeSelector={"nodeName": "x"}),
        None,
        [],
        {"spec": None},
    ],
)
def test_baseline_lets_ordinary_workloads_through(document: Any) -> None:
    assert fields(document) == []


def test_a_word_of_the_author_s_hides_no_field() -> None:
    assert fields({"data": {"spec": {"hostPID": True}}}) == ["data.spec.hostPID"]


def test_restricted_demands_of_every_container() -> None:
    context = f"{CONTAINER}.securityContext"
    assert fields(workload(), RESTRICTED) == [
        f"{context}.allowPrivilegeEscalation",
        f"{context}.capabilities.drop",
        f"{context}.runAsNonRoot",
        f"{context}.seccompProfile.type",
    ]
    assert fields(workload(SAFE_CONTAINER), RESTRICTED) == []


def test_restricted_takes_what_the_pod_says_for_its_containers() -> None:
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    shared = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}}
    assert fields(workload(secured(**own), securityContext=shared), RESTRICTED) == []
    assert fields(workload(secured(**own, runAsNonRoot=False), securityContext=shared), RESTRICTED) == [
        f"{CONTAINER}.securityContext.runAsNonRoot"
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"volumes": [{"name": "v", "nfs": {"server": "s"}}]}, "spec.template.spec.volumes[0].nfs"),
        ({"securityContext": {"runAsUser": 0}}, "spec.template.spec.securityContext.runAsUser"),
    ],
)
def test_restricted_refuses_more(change: dict[str, Any], field: str) -> None:
    document = workload(SAFE_CONTAINER, **change)
    assert fields(document) == [] and fields(document, RESTRICTED) == [field]


def test_restricted_reads_a_spark_application() -> None:
    body = {"podSecurityContext": {"runAsNonRoot": True}}
    found = fields({"kind": "SparkApplication", "spec": {"driver": body, "executor": body}}, RESTRICTED)
    assert "spec.driver.securityContext.allowPrivilegeEscalation" in found
    assert "spec.executor.securityContext.seccompProfile.type" in found
    assert "spec.driver.securityContext.runAsNonRoot" not in found


def test_exceptions_are_made_to_a_level() -> None:
    rdma = Profile(capabilities=frozenset({"IPC_LOCK"}), host_network=True, host_paths=("/data",), node_name=True)
    document = workload(
        {**secured(capabilities={"add": ["IPC_LOCK"]}), "ports": [{"hostPort": 8476}]},
        hostNetwork=True,
        nodeName="n1",
        volumes=[{"hostPath": {"path": "/data/a"}}, {"hostPath": {"path": "/data"}}],
    )
    assert fields(document, rdma) == []
    assert rdma.enforced is Level.PRIVILEGED and Profile(node_name=True).enforced is Level.BASELINE


@pytest.mark.parametrize("path", ["/database", "/data/../etc", "data", "/", "", None, 5, "/data/.."])
def test_a_folder_is_not_allowed_by_the_beginning_of_its_name(path: Any) -> None:
    profile = Profile(host_paths=("/data",))
    assert fields({"hostPath": {"path": path}}, profile) == ["hostPath"]


def test_only_the_listed_service_accounts_are_allowed_where_some_are_listed() -> None:
    some = Profile(service_accounts=frozenset({"trainer"}))
    for name, refused in (("trainer", 0), ("default", 0), ("", 0), ("root", 1)):
        assert len(fields(workload(serviceAccountName=name), some)) == refused
        assert len(fields(workload(serviceAccount=name), some)) == refused


def test_a_json_patch_is_judged_by_what_it_writes() -> None:
    path = "/spec/template/spec/containers/0/securityContext/capabilities/add/-"
    [written] = of_json_patch([{"op": "add", "path": path, "value": "SYS_ADMIN"}, {"op": "test", "path": "/a"}])
    assert fields(written, whole=False) == ["spec.template.spec.containers[0].securityContext.capabilities.add[0]"]
    [written] = of_json_patch([{"op": "replace", "path": "/spec/template/spec/hostPID", "value": True}])
    assert fields(written, whole=False) == ["spec.template.spec.hostPID"]
    for op in ("copy", "move"):
        with pytest.raises(ValueError, match="copy and move"):
            list(of_json_patch([{"op": op, "from": "/a", "path": "/spec/hostPID"}]))
