"""Isolation of the processes of pods on this machine: whether they may run, the files they see, and the network of their job.

Nothing runs without isolation. If the kernel or the administrator does not allow it, the pod's status gets the reason. A launch
receives the namespaces to enter, so that it does not depend on how the network is created.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from simulator import images
from simulator.node.runtime import launcher

SETTING = "CONVOY_PROCESS_PODS"
PATHS = "CONVOY_PROCESS_PATHS"
FLEET_FILE = "CONVOY_FLEET_FILE"
DEFAULT_NAMESPACES = ("default", "arena-system")
"""Where people try jobs, and where a member's supervisor of elastic jobs runs."""
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ssl/certs",
    "/etc/alternatives",
)
PYTHON = (sys.executable, "-I", "-S")
CANNOT = "this machine cannot isolate the processes of pods"
NOT_LINUX = f"{CANNOT}: it does not run Linux"


@dataclass(frozen=True, slots=True)
class Policy:
    """The namespaces in which the administrator allows pods to run as processes."""

    namespaces: frozenset[str] = frozenset(DEFAULT_NAMESPACES)
    asked: bool = False
    """Whether the administrator set it explicitly. Then it applies even if the fleet has real clusters."""
    fleet_file: Path | None = None
    """The file in which the control plane lists the real clusters of the fleet. Until it exists, nothing is allowed."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Policy":
        words = environ.get(SETTING, ",".join(DEFAULT_NAMESPACES)).replace(",", " ").split()
        file = environ.get(FLEET_FILE)
        return cls(frozenset(words) - {"off"}, SETTING in environ, Path(file) if file else None)

    def refusal(self, namespace: str) -> str:
        """Why a pod of the namespace may not run as a process. Empty if it may."""
        if not {namespace, "*"} & self.namespaces:
            return f"pods of namespace {namespace} may not run as processes: {SETTING} does not name it"
        if self.asked or self.fleet_file is None:
            return ""
        try:
            real = json.loads(self.fleet_file.read_text())["real"]
        except (OSError, ValueError, KeyError, TypeError):
            return "pods may not run as processes until the control plane has listed the real clusters of the fleet"
        if real:
            return f"pods do not run as processes beside real clusters ({', '.join(real)}) unless {SETTING} is set"
        return ""


@dataclass(frozen=True, slots=True)
class View:
    """The files of this machine that a process may see besides its own."""

    read: tuple[str, ...]
    hidden: tuple[str, ...]

    @classmethod
    def of(cls, environ: Mapping[str, str], home: Path) -> "View":
        """The system's programs, this interpreter, and paths that the administrator adds. Homes of Convoy are hidden."""
        prefixes = [
            Path(path).resolve() for path in (sys.prefix, sys.base_prefix, Path(sys.executable).resolve().parents[1])
        ]
        named = [*environ.get(PATHS, "").split(os.pathsep), *map(str, images.parse(environ).values())]
        added = [Path(path).resolve() for path in named if path]
        homes = [home, *(Path(environ[name]) for name in ("CONVOY_HOME",) if environ.get(name))]
        return cls(_outermost([*map(Path, SYSTEM), *prefixes, *added]), tuple(str(path.resolve()) for path in homes))


def _outermost(paths: list[Path]) -> tuple[str, ...]:
    """The paths that exist, without those inside another one."""
    there = dict.fromkeys(path for path in paths if path.is_symlink() or path.exists())
    folders = {path for path in there if path.is_dir() and not path.is_symlink()}
    return tuple(str(path) for path in there if not folders & set(path.parents))


class Networks:
    """One network for each job, with only a loopback interface that its pods share. It exists while one of them runs.

    For machines that cannot create a `network.MemberNetwork`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, tuple[int, ...]] = {}
        self._users: dict[str, int] = {}

    @contextmanager
    def of(self, job: str) -> Iterator[tuple[int, ...]]:
        """Descriptors of the namespaces to enter, in order. Raises OSError if the kernel creates none."""
        with self._lock:
            if job not in self._open:
                self._open[job] = make_network()
            self._users[job] = self._users.get(job, 0) + 1
        try:
            yield self._open[job]
        finally:
            self._leave(job)

    def _leave(self, job: str) -> None:
        with self._lock:
            self._users[job] -= 1
            if not self._users[job]:
                del self._users[job]
                for descriptor in self._open.pop(job):
                    os.close(descriptor)


def make_network() -> tuple[int, ...]:
    with subprocess.Popen(
        [*PYTHON, launcher.__file__, "network"], env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdin is not None  # noqa: S101, PT018
        answer = holder.stdout.readline().strip()
        if answer != "ready":
            raise OSError(0, answer or "no network could be made", "unshare")
        names = ("user", "net") if os.geteuid() else ("net",)
        descriptors = tuple(os.open(f"/proc/{holder.pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names)
        holder.stdin.close()
    return descriptors


def start_launcher(spec: launcher.Spec, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts a launcher. Its stdin stays open as long as the simulator lives, so that it ends with it."""
    started = subprocess.Popen(
        [*PYTHON, launcher.__file__, "run"],
        env={},
        cwd="/",
        pass_fds=spec["namespaces"],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert started.stdin is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError):
        started.stdin.write(json.dumps(spec).encode() + b"\n")
        started.stdin.flush()
    return started


class Isolation:
    """The isolation of one simulator's processes."""

    def __init__(self, view: View, policy: Policy) -> None:
        self.view, self.policy, self.networks = view, policy, Networks()
        self._tried = threading.Lock()
        self._fault: str | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str], home: Path) -> "Isolation":
        return cls(View.of(environ, home), Policy.of(environ))

    def refusal(self, namespace: str, scratch: Path) -> str:
        """Why a pod of the namespace may not run as a process on this machine. Empty if it may."""
        return self.policy.refusal(namespace) or self._kernel_refusal(scratch)

    def _kernel_refusal(self, scratch: Path) -> str:
        """Why the kernel does not isolate processes. Determined once, by isolating a command that does nothing."""
        with self._tried:
            if self._fault is None:
                self._fault = self._try(scratch) if sys.platform == "linux" else NOT_LINUX
            return self._fault

    def _try(self, scratch: Path) -> str:
        root = scratch / "isolation"
        root.mkdir(parents=True, exist_ok=True)
        try:
            with self.networks.of("") as namespaces, tempfile.TemporaryFile() as output:
                spec = self.spec([*PYTHON, "-c", ""], {}, root, namespaces=list(namespaces), hostname="pod")
                with start_launcher(spec, output) as started:
                    code = started.wait()
                output.seek(0)
                words = output.read().decode(errors="replace").strip().splitlines()
        except OSError as e:
            return f"{CANNOT}: {e.strerror}"
        return f"{CANNOT}: {words[-1] if words else code}" if code else ""

    def spec(self, command: list[str], env: Mapping[str, str], root: Path, **more: object) -> launcher.Spec:
        """The document that a launcher reads; ``more`` says what the command does not get by itself."""
        paths = {"workdir": "/", "cwd": "/", "pod": [], "write": [], "files": {}, "hosts": "", "message": ""}
        seen = {"read": list(self.view.read), "hidden": list(self.view.hidden)}
        return {"command": command, "env": dict(env), "root": str(root), **paths, **seen, **more}
