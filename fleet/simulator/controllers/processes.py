"""Runs a pod's first container as a real local process: its command, env and mounted files, its output as the log.

What differs from a container, on purpose: ``python`` is this interpreter; volumes become directories of the member's
home, and every mount path in command, args and env is replaced by its directory (the map is in ``CONVOY_MOUNTS``);
pods of one job talk over 127.0.0.1, so ``MASTER_ADDR`` and ``MASTER_PORT`` (with their ``PET_`` twins) are rewritten to
it and to a port of the job's own. Knows no API server: what it needs of one is handed in.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import guard
from .objects import Object, controller_of, name_of, namespace_of, uid_of

FetchData = Callable[[str, str, str], Mapping[str, str]]
"""(ConfigMap or Secret, namespace, name) -> its files as text; raises LookupError when it is not there."""

_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Launch:
    command: list[str]
    env: dict[str, str]
    folder: Path
    log: Path


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


class Process:
    """A started process group."""

    def __init__(self, launch: Launch) -> None:
        self.log = launch.log
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        with launch.log.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-I", guard.__file__, *launch.command],
                cwd=launch.folder,
                env=launch.env,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self) -> int:
        """The exit code, as a shell would say it; whatever the command left behind is killed."""
        code = self._popen.wait()
        self._signal(signal.SIGKILL)
        return code if code >= 0 else 128 - code

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


def prepare(pod: Object, home: Path, fetch: FetchData, ports: Ports, *, restart: int) -> Launch:
    """Lays out the pod's directory and says what to run. Raises LookupError or ValueError with words for a person."""
    container = pod["spec"]["containers"][0]
    folder = home / "pods" / uid_of(pod)
    folder.mkdir(parents=True, exist_ok=True)
    mounts = _mount(pod, container, folder, home, fetch)
    env = _environment(pod, container, fetch)
    owner = controller_of(pod)
    _localise(env, ports, owner["uid"] if owner else uid_of(pod))
    env = {name: _relocate(value, mounts) for name, value in env.items()}
    words = [*(container.get("command") or []), *(container.get("args") or [])]
    if not words:
        raise ValueError("a pod that runs as a process needs a command or args")
    command = [_relocate(_expand(word, env), mounts) for word in words]
    if command[0] in ("python", "python3"):
        command[0] = sys.executable
    base = {name: os.environ[name] for name in _KEPT if name in os.environ}
    base["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{base.get('PATH', os.defpath)}"
    about = {"HOSTNAME": name_of(pod), "POD_NAME": name_of(pod), "POD_NAMESPACE": namespace_of(pod)}
    where = Path(_relocate(container.get("workingDir") or "", mounts) or folder)
    return Launch(
        command=command,
        env={**base, **about, "CONVOY_MOUNTS": json.dumps(mounts), **env},
        folder=where if where.is_dir() else folder,
        log=log_path(home, pod, restart),
    )


def log_path(home: Path, pod: Object, restart: int) -> Path:
    return home / "logs" / uid_of(pod) / f"{restart}.log"


def sweep(home: Path, uid: str) -> None:
    """Removes what a deleted pod left on disk."""
    shutil.rmtree(home / "pods" / uid, ignore_errors=True)
    shutil.rmtree(home / "logs" / uid, ignore_errors=True)


def _mount(pod: Object, container: Object, folder: Path, home: Path, fetch: FetchData) -> dict[str, str]:
    """Mount path -> directory. ConfigMaps and Secrets are copied; a claim is a directory that outlives the pod."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    mounts = {}
    for mount in container.get("volumeMounts") or []:
        volume = volumes.get(mount["name"])
        if volume is None:
            raise LookupError(f"volume {mount['name']!r} is not declared")
        if claim := volume.get("persistentVolumeClaim"):
            place = home / "volumes" / namespace_of(pod) / Path(claim["claimName"]).name
        else:
            place = folder / "volumes" / Path(mount["name"]).name
        place.mkdir(parents=True, exist_ok=True)
        for name, text in _files(volume, namespace_of(pod), fetch).items():
            target = place / name
            if place.resolve() not in target.resolve().parents:
                raise ValueError(f"volume {mount['name']!r} names a file outside itself: {name!r}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        inside = place / mount["subPath"] if mount.get("subPath") else place
        mounts[mount["mountPath"].rstrip("/")] = str(inside)
    return mounts


def _files(volume: Object, namespace: str, fetch: FetchData) -> dict[str, str]:
    if source := volume.get("configMap"):
        data = dict(fetch("ConfigMap", namespace, source["name"]))
    elif source := volume.get("secret"):
        data = dict(fetch("Secret", namespace, source["secretName"]))
    else:
        return {}
    if items := source.get("items"):
        return {item["path"]: data[item["key"]] for item in items}
    return data


def _environment(pod: Object, container: Object, fetch: FetchData) -> dict[str, str]:
    env: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field in source:
                found = fetch(kind, namespace_of(pod), source[field]["name"])
                env.update({source.get("prefix", "") + key: value for key, value in found.items()})
    for entry in container.get("env") or []:
        if "valueFrom" in entry:
            env[entry["name"]] = _value_from(pod, entry["valueFrom"], fetch)
        else:
            env[entry["name"]] = _expand(str(entry.get("value") or ""), env)
    return env


def _value_from(pod: Object, source: Object, fetch: FetchData) -> str:
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field in source:
            data = fetch(kind, namespace_of(pod), source[field]["name"])
            if source[field]["key"] not in data and not source[field].get("optional"):
                raise LookupError(f"{kind} {source[field]['name']!r} has no key {source[field]['key']!r}")
            return data.get(source[field]["key"], "")
    found = pod
    path = str((source.get("fieldRef") or {}).get("fieldPath") or "")
    key = re.match(r"^metadata\.(labels|annotations)\['(.+)'\]$", path)
    for part in ("metadata", *key.groups()) if key else path.split("."):
        found = found.get(part, "") if isinstance(found, dict) else ""
    return str(found)


def _localise(env: dict[str, str], ports: Ports, job: str) -> None:
    """Nobody resolves the names of pods here: the pods of one job meet on the loopback."""
    if "MASTER_PORT" not in env and "PET_RDZV_ENDPOINT" not in env:
        return
    port = str(ports.of(job))
    local = {"ADDR": "127.0.0.1", "PORT": port}
    for name in [name for name in env if name in ("MASTER_ADDR", "PET_MASTER_ADDR", "MASTER_PORT", "PET_MASTER_PORT")]:
        env[name] = local[name.rsplit("_", 1)[1]]
    if "PET_RDZV_ENDPOINT" in env:
        env["PET_RDZV_ENDPOINT"] = f"127.0.0.1:{port}"


def _expand(text: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` as Kubernetes does it: unknown names stay as they are, ``$$`` is a dollar."""

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
