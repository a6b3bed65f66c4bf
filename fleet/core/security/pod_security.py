"""Pod Security Standards: which fields of a workload a namespace's profile does not allow, each named by its path.

What baseline forbids is forbidden by its presence, wherever it stands: so one walk judges a Pod, the templates of any kind,
kinds that this fleet does not know, and patches of them. What restricted demands besides is asked of whole pod specs.
Members are asked for the same by labels on their namespaces; this is the fleet's own check, for it names the field before
anything is placed. Knows manifests; knows no namespace and no caller.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

_BASELINE_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
_RESTRICTED_VOLUMES = frozenset(
    {
        "name",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
_SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_CONFINED = frozenset({"RuntimeDefault", "Localhost"})
_APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PARTIAL = frozenset({"runtimePatches", "podSpecOverrides", "podTemplateOverrides"})
"""Fields whose pod specs are changes to another one: they need not be whole."""
_SPARK_PODS = ("driver", "executor")
_SPARK_CONTAINERS = ("initContainers", "sidecars")
_TEXTS = frozenset(
    {"annotations", "binaryData", "data", "labels", "limits", "matchLabels", "nodeSelector", "requests", "stringData"}
)
"""Fields whose keys are the author's own words, not names of fields."""
_SECCOMP_ANNOTATION = "seccomp.security.alpha.kubernetes.io/"
"""Of a pod, or with ``container.`` before it of one container: Kubernetes before 1.27 makes fields of them."""
_SPARK_ACCOUNT = re.compile(r"spark\.kubernetes\.authenticate\.(\w+\.)?serviceAccountName")
_SPARK_CONF = re.compile(
    r"spark\.kubernetes\.(\w+\.podTemplateFile|\w+\.volumes\.hostPath\..*|\w+\.annotation\..*|authenticate\..*|namespace|context)"
    r"|spark\.(master|submit\.deployMode)"
)
"""What Spark would read past the fields that are judged here: other pods, other namespaces, other credentials."""


class Level(StrEnum):
    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


class Violation(NamedTuple):
    field: str
    detail: str


@dataclass(frozen=True, slots=True)
class Profile:
    """What the workloads of a namespace may ask for: a level, and the exceptions that an admin made to it."""

    level: Level = Level.BASELINE
    service_accounts: frozenset[str] = frozenset()
    """The only ones besides ``default``; empty: any, as in Kubernetes."""
    capabilities: frozenset[str] = frozenset()
    host_paths: tuple[str, ...] = ()
    """Folders of a node that may be mounted, with all below them."""
    host_network: bool = False
    node_name: bool = False

    @property
    def enforced(self) -> Level:
        """What the member is asked to enforce: it knows levels, and no exceptions to them."""
        has_exceptions = self.capabilities or self.host_paths or self.host_network
        return Level.PRIVILEGED if has_exceptions else self.level


def violations(document: Any, profile: Profile, *, whole: bool = True) -> Iterator[Violation]:
    """Every field of the manifest that the profile does not allow; ``whole`` is false for a patch."""
    if profile.level is Level.PRIVILEGED:
        return
    check = _Check(profile, whole)
    yield from check.walk(document, "")
    spec = document.get("spec") if isinstance(document, dict) else None
    if whole and check.restricted and document.get("kind") == "SparkApplication" and isinstance(spec, dict):
        for role in _SPARK_PODS:
            if isinstance(body := spec.get(role), dict):
                pod = {"securityContext": body.get("podSecurityContext")}
                containers = [(f"spec.{role}", body), *_containers(body, f"spec.{role}", _SPARK_CONTAINERS)]
                yield from _demanded(pod, containers, f"spec.{role}.podSecurityContext")


def of_json_patch(operations: Any) -> Iterator[Any]:
    """What the operations of a JSON patch write, each as a document with the value in its place.

    Raises `ValueError` for an operation that moves what is there already: its effect is not in the patch.
    """
    for operation in operations if isinstance(operations, list) else ():
        if not isinstance(operation, dict) or operation.get("op") == "test":
            continue
        if operation.get("op") not in ("add", "replace", "remove"):
            raise ValueError("operations copy and move are not allowed on workloads: write the value itself")
        written = operation.get("value") if operation["op"] != "remove" else None
        for part in reversed(str(operation.get("path") or "").split("/")[1:]):
            name = part.replace("~1", "/").replace("~0", "~")
            written = [written] if name == "-" or name.isdigit() else {name: written}
        yield written


class _Check:
    def __init__(self, profile: Profile, whole: bool) -> None:
        self._profile, self._whole = profile, whole
        self.restricted = profile.level is Level.RESTRICTED
        standard = _RESTRICTED_CAPABILITIES if self.restricted else _BASELINE_CAPABILITIES
        self._capabilities = standard | profile.capabilities

    def walk(self, value: Any, path: str, whole: bool = True) -> Iterator[Violation]:
        if isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, (dict, list)):
                    yield from self.walk(item, f"{path}[{index}]", whole)
        elif isinstance(value, dict):
            yield from self._fields(value, path, whole)

    def _fields(self, fields: Mapping[str, Any], path: str, whole: bool) -> Iterator[Violation]:
        for name, value in fields.items():
            rule, is_nested = _RULES.get(name), isinstance(value, (dict, list))
            if rule is None and not is_nested:
                continue
            here = f"{path}.{name}" if path else str(name)
            if rule is not None:
                yield from rule(self, value, here)
            if name in _TEXTS and isinstance(value, dict):
                nested = {key: inner for key, inner in value.items() if isinstance(inner, (dict, list))}
                if nested:
                    yield from self._fields(nested, here, whole)
            elif is_nested:
                yield from self.walk(value, here, whole and name not in _PARTIAL)
        if self.restricted and self._whole and whole and isinstance(fields.get("containers"), list):
            yield from _demanded(fields, _containers(fields, path), f"{path}.securityContext".lstrip("."))

    def switch(self, value: Any, path: str) -> Iterator[Violation]:
        """A field that must not be set: anything but false is."""
        if value not in (None, False):
            yield Violation(path, "must not be true")

    def host_network(self, value: Any, path: str) -> Iterator[Violation]:
        if not self._profile.host_network:
            yield from self.switch(value, path)

    def host_path(self, value: Any, path: str) -> Iterator[Violation]:
        if value is None:
            return
        folder = value.get("path") if isinstance(value, dict) else None
        if not isinstance(folder, str) or not _is_below(folder, self._profile.host_paths):
            yield Violation(path, "must not be used: it mounts a folder of the node")

    def volumes(self, value: Any, path: str) -> Iterator[Violation]:
        for index, volume in enumerate(value if isinstance(value, list) and self.restricted else ()):
            for kind in sorted(volume.keys() - _RESTRICTED_VOLUMES - {"hostPath"}) if isinstance(volume, dict) else ():
                if volume[kind] is not None and not str(kind).startswith("$"):
                    yield Violation(f"{path}[{index}].{kind}", "is not among the volume types of level restricted")

    def capabilities(self, value: Any, path: str) -> Iterator[Violation]:
        added = value.get("add") if isinstance(value, dict) else None
        for index, name in enumerate(added if isinstance(added, list) else ()):
            if str(name) not in self._capabilities:
                yield Violation(
                    f"{path}.add[{index}]", f"must not be {name!r}: it is not among the allowed capabilities"
                )

    def host_port(self, value: Any, path: str) -> Iterator[Violation]:
        if value not in (None, 0) and not self._profile.host_network:
            yield Violation(path, "must not be set: it takes a port of the node")

    def proc_mount(self, value: Any, path: str) -> Iterator[Violation]:
        if value not in (None, "", "Default"):
            yield Violation(path, "must be Default")

    def confinement(self, value: Any, path: str) -> Iterator[Violation]:
        kind = value.get("type") if isinstance(value, dict) else None
        if kind is not None and kind not in _CONFINED:
            yield Violation(f"{path}.type", f"must be RuntimeDefault or Localhost, not {kind!r}")

    def selinux(self, value: Any, path: str) -> Iterator[Violation]:
        options = value if isinstance(value, dict) else {}
        if (options.get("type") or "") not in _SELINUX_TYPES:
            yield Violation(f"{path}.type", f"must be one of {', '.join(sorted(_SELINUX_TYPES - {''}))}")
        for name in ("user", "role"):
            if options.get(name):
                yield Violation(f"{path}.{name}", "must not be set")

    def sysctls(self, value: Any, path: str) -> Iterator[Violation]:
        for index, entry in enumerate(value if isinstance(value, list) else ()):
            name = entry.get("name") if isinstance(entry, dict) else None
            if name not in _SYSCTLS:
                yield Violation(f"{path}[{index}].name", f"must be a sysctl that is safe for other pods, not {name!r}")

    def probe(self, value: Any, path: str) -> Iterator[Violation]:
        if isinstance(value, dict) and value.get("host"):
            yield Violation(f"{path}.host", "must not be set: the node would send requests there")

    def annotations(self, value: Any, path: str) -> Iterator[Violation]:
        for name, text in value.items() if isinstance(value, dict) else ():
            if str(name).startswith(_APPARMOR_ANNOTATION) and not _is_confined(text, "runtime/default"):
                yield Violation(f"{path}.{name}", "must be runtime/default or localhost/PROFILE")
            is_seccomp = str(name).removeprefix("container.").startswith(_SECCOMP_ANNOTATION)
            if is_seccomp and not _is_confined(text, "runtime/default", "docker/default"):
                yield Violation(f"{path}.{name}", "must be runtime/default or localhost/PROFILE")

    def node_name(self, value: Any, path: str) -> Iterator[Violation]:
        if value and not self._profile.node_name:
            yield Violation(path, "must not be set: it goes past the scheduler, to any node")

    def priority_class(self, value: Any, path: str) -> Iterator[Violation]:
        if isinstance(value, str) and value.startswith("system-"):
            yield Violation(path, f"must not be {value!r}: its pods evict those of all tenants of the cluster")

    def service_account(self, value: Any, path: str) -> Iterator[Violation]:
        accounts = self._profile.service_accounts
        if accounts and isinstance(value, str) and value not in ("", "default") and value not in accounts:
            yield Violation(path, f"must be a service account allowed in this namespace, not {value!r}")

    def spark_conf(self, value: Any, path: str) -> Iterator[Violation]:
        for name, text in value.items() if isinstance(value, dict) else ():
            if _SPARK_ACCOUNT.fullmatch(str(name)):
                yield from self.service_account(text, f"{path}.{name}")
            elif _SPARK_CONF.fullmatch(str(name)):
                yield Violation(f"{path}.{name}", "must not be set: write the application's own fields instead")

    def user(self, value: Any, path: str) -> Iterator[Violation]:
        if self.restricted and value == 0 and value is not False:
            yield Violation(path, "must not be 0")


_RULES = {
    "hostNetwork": _Check.host_network,
    "hostPID": _Check.switch,
    "hostIPC": _Check.switch,
    "privileged": _Check.switch,
    "hostProcess": _Check.switch,
    "hostPath": _Check.host_path,
    "volumes": _Check.volumes,
    "capabilities": _Check.capabilities,
    "hostPort": _Check.host_port,
    "procMount": _Check.proc_mount,
    "seccompProfile": _Check.confinement,
    "appArmorProfile": _Check.confinement,
    "seLinuxOptions": _Check.selinux,
    "sysctls": _Check.sysctls,
    "httpGet": _Check.probe,
    "tcpSocket": _Check.probe,
    "annotations": _Check.annotations,
    "nodeName": _Check.node_name,
    "priorityClassName": _Check.priority_class,
    "priorityClass": _Check.priority_class,
    "serviceAccountName": _Check.service_account,
    "serviceAccount": _Check.service_account,
    "runAsUser": _Check.user,
    "sparkConf": _Check.spark_conf,
}
"""By the name of a field, wherever it stands."""


def _demanded(pod: Mapping[str, Any], containers: Iterable[tuple[str, Any]], of_pod: str) -> Iterator[Violation]:
    """What level restricted asks for: of the pod for all its containers, or of each of them."""
    shared = _mapping(pod.get("securityContext"))
    for path, container in containers:
        own, where = _mapping(_mapping(container).get("securityContext")), f"{path}.securityContext"
        if own.get("allowPrivilegeEscalation") is not False:
            yield Violation(f"{where}.allowPrivilegeEscalation", "must be false")
        dropped = _mapping(own.get("capabilities")).get("drop")
        if not isinstance(dropped, list) or "ALL" not in dropped:
            yield Violation(f"{where}.capabilities.drop", "must include ALL")
        if own.get("runAsNonRoot", shared.get("runAsNonRoot")) is not True:
            yield Violation(f"{where}.runAsNonRoot", f"must be true, here or in {of_pod}")
        profile = own.get("seccompProfile") or shared.get("seccompProfile")
        if _mapping(profile).get("type") not in _CONFINED:
            yield Violation(f"{where}.seccompProfile.type", f"must be RuntimeDefault or Localhost, here or in {of_pod}")


def _containers(spec: Mapping[str, Any], path: str, fields: Iterable[str] = _CONTAINERS) -> Iterator[tuple[str, Any]]:
    for field in fields:
        listed: Sequence[Any] = spec[field] if isinstance(spec.get(field), list) else []
        for index, container in enumerate(listed):
            yield f"{path}.{field}[{index}]".lstrip("."), container


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_below(folder: str, allowed: Iterable[str]) -> bool:
    parts = folder.split("/")
    if not folder.startswith("/") or ".." in parts:
        return False
    return any(folder == root or folder.startswith(f"{root.rstrip('/')}/") for root in allowed)


def _is_confined(text: Any, *defaults: str) -> bool:
    return isinstance(text, str) and (text in ("", *defaults) or text.startswith("localhost/"))
