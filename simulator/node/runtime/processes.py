"""Runs a container of a pod as a real local process: its command, env and mounted files, its output as the log.

Isolated: see `launcher`. What differs from a container, on purpose: ``python`` is this interpreter; volumes become
directories of the member's home, and every mount path in command, args and env is replaced by its directory (the map is in
``CONVOY_MOUNTS``). Where this machine makes no network for the member, pods of one job talk over a 127.0.0.1 of their own, and
``MASTER_ADDR`` and ``MASTER_PORT`` (with their ``PET_`` twins) are rewritten to it and to a port of the job's own. Knows no
API server: what it needs of one is handed in.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from simulator.machinery.objects import Object, controller_of, name_of, namespace_of, uid_of
from simulator.node.runtime import launcher, names
from simulator.node.runtime.isolation import Isolation, start_launcher

FetchData = Callable[[str, str, str], Mapping[str, str]]
"""Returns the files of a ConfigMap or Secret, by kind, namespace and name. Raises LookupError if it does not exist."""

MOST_MESSAGE = 4096
"""Bytes of a termination message, as a kubelet has it."""
ACCOUNT_FILES = "/var/run/secrets/kubernetes.io/serviceaccount"
_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_KEPT = ("LANG", "LC_ALL")
_PATH = "/usr/local/bin:/usr/bin:/bin"
_NAME = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")


@dataclass(frozen=True, slots=True)
class Launch:
    """A command, and the files in the member's home that it may see."""

    command: list[str]
    env: dict[str, str]
    folder: Path
    """The pod's folder. The command sees only the parts of it in ``read`` and ``write``."""
    log: Path
    job: str
    """Pods of one job share a loopback where the member has no network."""
    hostname: str
    workdir: str
    read: tuple[Path, ...]
    write: tuple[Path, ...]
    work: Path
    """The working directory, which is also HOME."""
    message: Path
    """The file that becomes its termination log."""
    files: dict[str, str] = field(default_factory=dict)
    """Path in the pod to text, as the files of its ServiceAccount."""
    hosts: Path | None = None
    """The file that becomes its /etc/hosts. None: a file with only the loopback."""


class Ports:
    """One free loopback port per job, the same for all its pods as long as the simulator lives; its pods start in threads."""

    def __init__(self) -> None:
        self._by_job: dict[str, int] = {}
        self._one_asks = threading.Lock()

    def of(self, job: str) -> int:
        with self._one_asks:
            if job not in self._by_job:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", 0))
                    self._by_job[job] = probe.getsockname()[1]
            return self._by_job[job]


Network = AbstractContextManager[tuple[int, ...]]


class Process:
    """A started launcher with its command. Raises OSError if the kernel does not isolate it."""

    def __init__(self, launch: Launch, isolation: Isolation, network: Network | None = None) -> None:
        """``network`` gives the descriptors of the pod's network; without it, its job's loopback is used."""
        self.log, self.launch = launch.log, launch
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        root = launch.folder / "root"
        root.mkdir(exist_ok=True)
        self._network = network or isolation.networks.of(launch.job)
        namespaces = self._network.__enter__()
        spec = isolation.spec(
            launch.command,
            launch.env,
            root,
            namespaces=list(namespaces),
            hostname=launch.hostname,
            files=launch.files,
            hosts=str(launch.hosts or ""),
            message=str(launch.message),
            workdir=launch.workdir,
            cwd=str(launch.work),
            pod=[str(path) for path in launch.read],
            write=[str(path) for path in launch.write],
        )
        with launch.log.open("ab") as output:
            self._popen = start_launcher(spec, output)

    def wait(self) -> int:
        """Waits for the exit code, in the convention of shells. Kills all processes that the command left behind."""
        code = self._popen.wait()
        self._signal(signal.SIGKILL)
        assert self._popen.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.close()
        self._network.__exit__(None, None, None)
        return code if code >= 0 else 128 - code

    def message(self) -> str:
        """What the command wrote into its termination log."""
        with self.launch.message.open("rb") as file:
            return file.read(MOST_MESSAGE).decode(errors="replace")

    @property
    def pid(self) -> int:
        """Of the launcher, which is in the pod's namespaces."""
        return self._popen.pid

    def ended(self) -> bool:
        return self._popen.returncode is not None

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._popen.pid, number)
        except ProcessLookupError:
            return


@dataclass(frozen=True, slots=True)
class InCluster:
    """Host, port and credentials of the member's API, as in-cluster clients expect them."""

    host: str
    port: int
    token: str
    ca_pem: str
    namespace: str

    @property
    def env(self) -> dict[str, str]:
        return {"KUBERNETES_SERVICE_HOST": self.host, "KUBERNETES_SERVICE_PORT": str(self.port)}

    @property
    def files(self) -> dict[str, str]:
        contents = {"token": self.token, "ca.crt": self.ca_pem, "namespace": self.namespace}
        return {f"{ACCOUNT_FILES}/{name}": text for name, text in contents.items()}


def prepare(
    pod: Object,
    home: Path,
    fetch: FetchData,
    ports: Ports | None,
    *,
    restart: int,
    cluster: InCluster | None = None,
    programs: Path = Path(sys.prefix),
    init: Object | None = None,
) -> Launch:
    """Creates the pod's directory and returns what to run. Raises LookupError or ValueError with a message for the user.

    It is the first container, or the init container ``init``, whose working directory is its own. ``programs`` is a virtual
    environment: ``python`` is its interpreter, and its programs come first. Without ``ports`` the pod has an address in the
    member's network, and its /etc/hosts is ``hosts`` in its folder.
    """
    container, init_name = init or pod["spec"]["containers"][0], _plain(init["name"]) if init else ""
    folder = home / "pods" / uid_of(pod)
    work = _give(folder / "init" / init_name if init else folder / "work")
    mounts, read, write = _mount(pod, container, folder, home, fetch)
    env = _environment(pod, container, fetch)
    owner = controller_of(pod)
    job = owner["uid"] if owner else uid_of(pod)
    if ports is not None:
        _localise(env, ports, job)
    env = {name: _relocate(value, mounts) for name, value in env.items()}
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    if not words:
        raise ValueError("a pod that runs as a process needs a command or args")
    command = [_relocate(_expand(word, env), mounts) for word in words]
    if command[0] in ("python", "python3"):
        command[0] = str(programs / "bin" / "python")
    base = {name: os.environ[name] for name in _KEPT if name in os.environ}
    base |= {"PATH": f"{programs / 'bin'}{os.pathsep}{_PATH}", "HOME": str(work)}
    hostname = names.hostname(pod)
    about = {"HOSTNAME": hostname, "POD_NAME": name_of(pod), "POD_NAMESPACE": namespace_of(pod)}
    about |= cluster.env if cluster else {}
    return Launch(
        command=command,
        env={**base, **about, "CONVOY_MOUNTS": json.dumps(mounts), **env},
        folder=folder,
        log=log_path(home, pod, restart, init_name),
        message=_message_file(folder / "messages" / f"{init_name}.{restart}"),
        work=work,
        job=job,
        hostname=hostname,
        files=cluster.files if cluster else {},
        hosts=None if ports is not None else folder / "hosts",
        workdir=_relocate(container.get("workingDir") or "", mounts) or str(work),
        read=read,
        write=(work, *write),
    )


def log_path(home: Path, pod: Object, restart: int, init: str = "") -> Path:
    """``init``: the name of an init container; else it is the log of the first container."""
    return (
        home / "logs" / uid_of(pod) / f"{init}.{restart}.log"
        if init
        else home / "logs" / uid_of(pod) / f"{restart}.log"
    )


def _message_file(path: Path) -> Path:
    """An empty file that the pod may write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    if os.geteuid() == 0:
        os.chown(path, launcher.POD_UID, launcher.POD_UID)
    return path


def sweep(home: Path, uid: str) -> None:
    """Removes the files of a deleted pod; by a program, which folders of any depth and number do not stop."""
    folders = [str(home / kind / uid) for kind in ("pods", "logs")]
    subprocess.run(["rm", "-rf", "--", *folders], stderr=subprocess.DEVNULL, check=False)


def _mount(
    pod: Object, container: Object, folder: Path, home: Path, fetch: FetchData
) -> tuple[dict[str, str], tuple[Path, ...], tuple[Path, ...]]:
    """Mount path -> directory, and which directories it may read and which it may write.

    ConfigMaps and Secrets are copied; a claim is a directory that outlives the pod. What the pod may write, and so may hold
    links that it made, is never written here, and never below it.
    """
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    mounts: dict[str, str] = {}
    read: dict[Path, None] = {}
    write: dict[Path, None] = {}
    for mount in container.get("volumeMounts") or []:
        volume = volumes.get(mount["name"])
        if volume is None:
            raise LookupError(f"volume {mount['name']!r} is not declared")
        if "configMap" in volume or "secret" in volume:
            place = folder / "files" / _plain(mount["name"])
            _copy(place, _files(volume, namespace_of(pod), fetch))
            read[place] = None
        elif claim := volume.get("persistentVolumeClaim"):
            place = _give(home / "volumes" / _plain(namespace_of(pod)) / _plain(claim["claimName"]))
            write[place] = None
        else:
            place = _give(folder / "volumes" / _plain(mount["name"]))
            write[place] = None
        inside = place / mount["subPath"] if mount.get("subPath") else place
        mounts[mount["mountPath"].rstrip("/")] = str(inside)
    return mounts, tuple(read), tuple(write)


def _plain(name: str) -> str:
    """A name that is one step of a path, and not one up."""
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is not a valid volume name")
    return name


def _give(place: Path) -> Path:
    """Creates a directory that the pod owns. An existing one gets the pod's uid completely."""
    place.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0 and place.stat().st_uid != launcher.POD_UID:
        for folder, folders, files in os.walk(place):
            for name in (*folders, *files):
                os.chown(Path(folder) / name, launcher.POD_UID, launcher.POD_UID, follow_symlinks=False)
        os.chown(place, launcher.POD_UID, launcher.POD_UID)
    return place


def _copy(place: Path, files: Mapping[str, str]) -> None:
    """Writes files that the pod may read but not change."""
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        target = place / name
        if place.resolve() not in target.resolve().parents:
            raise ValueError(f"volume {place.name!r} names a file outside itself: {name!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def add_late_secrets(pod: Object, folder: Path, fetch: FetchData) -> None:
    """Copies the optional Secrets that did not exist when the pod started, as a kubelet does after a while."""
    for volume in pod["spec"].get("volumes") or []:
        place = folder / "files" / _plain(volume["name"])
        if (volume.get("secret") or {}).get("optional") and place.is_dir() and not any(place.iterdir()):
            _copy(place, _files(volume, namespace_of(pod), fetch))


def _files(volume: Object, namespace: str, fetch: FetchData) -> dict[str, str]:
    if source := volume.get("configMap"):
        data = dict(fetch("ConfigMap", namespace, source["name"]))
    elif source := volume.get("secret"):
        try:
            data = dict(fetch("Secret", namespace, source["secretName"]))
        except LookupError:
            if not source.get("optional"):
                raise
            data = {}
    else:
        return {}
    if items := source.get("items"):
        return {item["path"]: data[item["key"]] for item in items}
    return data


def _environment(pod: Object, container: Object, fetch: FetchData) -> dict[str, str]:
    env: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        for reference, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if reference in source:
                source_object = fetch(kind, namespace_of(pod), source[reference]["name"])
                env.update({source.get("prefix", "") + key: value for key, value in source_object.items()})
    for entry in container.get("env") or []:
        if "valueFrom" in entry:
            env[entry["name"]] = _value_from(pod, entry["valueFrom"], fetch)
        else:
            env[entry["name"]] = _expand(str(entry.get("value") or ""), env)
    return env


def _value_from(pod: Object, source: Object, fetch: FetchData) -> str:
    for reference, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if reference in source:
            data = fetch(kind, namespace_of(pod), source[reference]["name"])
            if source[reference]["key"] not in data and not source[reference].get("optional"):
                raise LookupError(f"{kind} {source[reference]['name']!r} has no key {source[reference]['key']!r}")
            return data.get(source[reference]["key"], "")
    value = pod
    path = str((source.get("fieldRef") or {}).get("fieldPath") or "")
    key = re.match(r"^metadata\.(labels|annotations)\['(.+)'\]$", path)
    for part in ("metadata", *key.groups()) if key else path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def _localise(env: dict[str, str], ports: Ports, job: str) -> None:
    """Makes the pods of a job use the loopback they share, because no DNS resolves their names here."""
    if "MASTER_PORT" not in env and "PET_RDZV_ENDPOINT" not in env:
        return
    port = str(ports.of(job))
    local = {"ADDR": "127.0.0.1", "PORT": port}
    for name in [name for name in env if name in ("MASTER_ADDR", "PET_MASTER_ADDR", "MASTER_PORT", "PET_MASTER_PORT")]:
        env[name] = local[name.rsplit("_", 1)[1]]
    if "PET_RDZV_ENDPOINT" in env:
        env["PET_RDZV_ENDPOINT"] = f"127.0.0.1:{port}"


def _expand(text: str, env: Mapping[str, str]) -> str:
    """Expands ``$(NAME)`` as Kubernetes does: unknown names are not changed, and ``$$`` is a dollar."""

    def one(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else env.get(name, match.group(0))

    return _VARIABLE.sub(one, text)


def _relocate(text: str, mounts: Mapping[str, str]) -> str:
    """Replaces mount paths, longest first, where they stand as whole leading parts of a path."""
    if not mounts:
        return text
    paths = "|".join(re.escape(path) for path in sorted(mounts, key=len, reverse=True) if path)
    return re.sub(rf"(?<![\w./-])({paths})(?=/|$|[\s:;,'\")])", lambda m: mounts[m.group(1)], text)
