"""The pod template of a role, made from the flags that all kinds of jobs share. Pure: structures in, structures out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from frontend.cli.problems import usage
from frontend.cli.submit import values
from frontend.cli.submit.flags import Options

Manifest = dict[str, Any]
GPU, LINKED_GPU, RDMA = "nvidia.com/gpu", "aliyun.com/gpu", "rdma/hca"
CODE = "/code"
_HOST = ("hostNetwork", "hostIPC", "hostPID")


@dataclass(frozen=True, slots=True)
class Role:
    """What distinguishes one role's pods from those of the others. ``runs`` is whether they run the command of the line."""

    container: str
    image: str
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    runs: bool = True
    mounts: bool = True
    rdma: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    name: str
    path: str
    source: Manifest


def metadata(options: Options, annotations: Mapping[str, str]) -> Manifest:
    """The metadata of the job."""
    written = {
        "labels": values.pairs("--label", options["label"]),
        "annotations": {**values.pairs("--annotation", options["annotation"]), **annotations},
    }
    return {"name": options["name"], "namespace": options["namespace"]} | _filled(written)


def template(options: Options, role: Role, command: list[str]) -> Manifest:
    mounts = mounts_of(options) if role.mounts else []
    code = _code_mount(options)
    mounts = [*mounts, code] if code and role.runs else mounts
    annotations = {**values.pairs("--annotation", options["annotation"]), **role.annotations}
    head = _filled({"labels": values.pairs("--label", options["label"]), "annotations": annotations})
    spec = _filled(
        {
            "schedulerName": options["scheduler"],
            "priorityClassName": options["priority"],
            "nodeSelector": dict(role.selector) or values.pairs("--selector", options["selector"]),
            "tolerations": values.tolerations("--toleration", options["toleration"]),
            "imagePullSecrets": [{"name": name} for name in options["image_pull_secret"]],
            "volumes": [{"name": mount.name, **mount.source} for mount in mounts],
            "initContainers": [_fetch(options, role)] if code and role.runs else [],
            **{name: options[name] for name in _HOST},
            "dnsPolicy": "ClusterFirstWithHostNet" if options["hostNetwork"] else "",
        }
    )
    return _filled({"metadata": head}) | {"spec": spec | {"containers": [_container(options, role, command, mounts)]}}


def mounts_of(options: Options) -> list[Mount]:
    """What --data, --data-dir and --share-memory mount."""
    claims = values.claims("--data", options["data"]).items()
    directories = enumerate(values.directories("--data-dir", options["data_dir"]))
    shared = values.quantity("--share-memory", options.get("share_memory") or "")
    memory = {"emptyDir": {"medium": "Memory", "sizeLimit": shared}}
    return [
        *(
            Mount(f"claim-{i}", path, {"persistentVolumeClaim": {"claimName": name}})
            for i, (name, path) in enumerate(claims)
        ),
        *(Mount(f"directory-{i}", path, {"hostPath": {"path": host}}) for i, (host, path) in directories),
        *([Mount("shared-memory", "/dev/shm", memory)] if shared else []),  # noqa: S108 - of the pod, not of this machine
    ]


def amounts(cpu: tuple[str, str], memory: tuple[str, str]) -> dict[str, str]:
    """CPU and memory, each as its flag and the flag's value; those that are not given are left out."""
    return _filled({"cpu": values.quantity(*cpu), "memory": values.quantity(*memory)})


def devices(options: Options, gpus: int, *, resource: str = GPU) -> dict[str, str]:
    return ({resource: str(gpus)} if gpus else {}) | values.quantities("--device", options["device"])


def _container(options: Options, role: Role, command: list[str], mounts: list[Mount]) -> Manifest:
    env = values.pairs("--env", options["env"]) | dict(role.env)
    rdma = {RDMA: "1"} if role.rdma and options["rdma"] else {}
    container = {
        "name": role.container,
        "image": role.image,
        "imagePullPolicy": options["image_pull_policy"],
        "workingDir": options["working_dir"],
        "command": command if role.runs else [],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": _filled({"requests": dict(role.requests), "limits": {**role.limits, **rdma}}),
        "volumeMounts": [{"name": mount.name, "mountPath": mount.path} for mount in mounts],
        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}} if rdma else {},
    }
    return _filled(container)


def _code_mount(options: Options) -> Mount | None:
    """Where the code is that --sync-mode fetches: the subdirectory ``code`` of the working directory."""
    if not options["sync_mode"]:
        if options["sync_source"] or options["sync_image"]:
            raise usage("--sync-source says where the code is, and no flag how to fetch it", "add --sync-mode=git")
        return None
    for flag, key, example in (
        ("--sync-source", "sync_source", "--sync-source=https://git.example.com/team/train.git"),
        ("--sync-image", "sync_image", "--sync-image=IMAGE, an image of git-sync or one with rsync"),
    ):
        if not options[key]:
            raise usage(f"--sync-mode={options['sync_mode']} needs {flag}", f"for example: {example}")
    return Mount("code", options["working_dir"].rstrip("/") + CODE, {"emptyDir": {}})


def _fetch(options: Options, role: Role) -> Manifest:
    """The init container that fetches the code. It has the job's variables, which may hold what git-sync signs in with."""
    source = options["sync_source"]
    env = values.pairs("--env", options["env"])
    command = []
    if options["sync_mode"] == "git":
        name = source.rstrip("/").rpartition("/")[2].removesuffix(".git")
        env |= {"GIT_SYNC_REPO": source, "GIT_SYNC_DEST": name, "GIT_SYNC_ROOT": CODE, "GIT_SYNC_ONE_TIME": "true"}
    else:
        command = ["rsync", "-avP", "--", source, CODE]
    container = {
        "name": "init-code",
        "image": options["sync_image"],
        "command": command,
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": _filled({"requests": dict(role.requests)}),
        "volumeMounts": [{"name": "code", "mountPath": CODE}],
    }
    return _filled(container)


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is empty or off: no field says what its default says."""
    return {
        name: value for name, value in values.items() if value not in ("", None, False) and value != [] and value != {}
    }
