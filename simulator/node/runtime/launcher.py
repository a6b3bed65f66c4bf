"""Runs one command isolated from this machine, and takes all it started down with the simulator. A script of its own.

``launcher.py run`` reads one line of JSON (`Spec`) from standard input and runs its command in namespaces of its own (user,
mount, PID, IPC, host name, and the network that it is handed): it sees its own files and the system's programs, its own
processes and that network; it has no privileges and can gain none. Its limit of processes is its own as well, for the kernel
counts them for each user namespace. The simulator holds the other end of standard input; when it
dies, however it dies, everything the command started is killed. Leaves with the command's exit code (128 + signal when
killed), or with 125 when the isolation cannot be had: then the command is not run. SIGTERM is the command's alone.

``launcher.py enter FD`` reads a `Spec` from the descriptor and runs its command in the namespaces of a pod that runs;
``launcher.py connect FD PORT NAMESPACE ...`` sends a connection to a port on the loopback of a pod over the Unix socket FD.

``launcher.py network`` makes the network: it says ``ready`` and waits for the end of its input, while the simulator takes
hold of its namespaces. The simulator owns every file named in a `Spec`; the command's own environment reaches only the command,
for a library path in it must not be loaded by what still has privileges. Linux only; nothing but the standard library.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import termios
from pathlib import Path
from typing import Any

POD_UID = 61042
"""The uid of every isolated command. Not used by Debian, systemd or containers; below 65536 for user namespaces."""
FAILED = 125
NAMESPACES = {"mount": 0x00020000, "uts": 0x04000000, "ipc": 0x08000000, "pid": 0x20000000}
NEW_USER, NEW_NET = 0x10000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 32, 4096, 16384, 1 << 18
MS_RDONLY, MNT_DETACH = 1, 2
AT_FDCWD, AT_RECURSIVE, MOUNT_SETATTR = -100, 0x8000, 442
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
PR_SET_PDEATHSIG, PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 23, 24, 38
KEYCTL = {"x86_64": 250, "aarch64": 219}
KEYCTL_JOIN_SESSION_KEYRING = 1
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
DEVICES = ("null", "zero", "full", "random", "urandom")
LIMITS = {
    resource.RLIMIT_NPROC: 1024,
    resource.RLIMIT_NOFILE: 4096,
    resource.RLIMIT_FSIZE: 4 << 30,
    resource.RLIMIT_DATA: 8 << 30,
    resource.RLIMIT_CORE: 0,
}
SCRATCH = "size=256m,nr_inodes=65536,mode=1777"
"""Scratch space is memory, and so is what the kernel keeps of each file."""
MOST_USER_NAMESPACES = "/proc/sys/user/max_user_namespaces"
HOSTS = "/etc/hosts"
TERMINATION_LOG = "/dev/termination-log"
LIBC = ctypes.CDLL(None, use_errno=True)
Spec = dict[str, Any]
"""command, env, workdir and cwd (where the first does not exist), root (an empty folder), read (of the system), hidden (of
those), pod (its own, to read), write (its own), hostname, namespaces (descriptors to enter), files (path to text), hosts (the
file that becomes its /etc/hosts; empty: one that names the loopback), message (the file that becomes its termination log, or
empty). To enter: tty, stdin (whether it has an input)."""


def main(arguments: list[str]) -> int:
    if arguments == ["network"]:
        return hold_network()
    if arguments and arguments[0] in ("enter", "connect"):
        return enter(int(arguments[1])) if arguments[0] == "enter" else connect(*map(int, arguments[1:]))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return run(json.loads(read_line()))
    except OSError as e:
        print(f"isolation: {e.filename or 'a call'}: {e.strerror}", file=sys.stderr, flush=True)
        return FAILED


def read_line() -> bytes:
    """Byte by byte is too slow, and what follows the line is nothing: the input stays open for its end alone."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, 65536)
        if not chunk:
            raise OSError(0, "the simulator is gone", "standard input")
        line += chunk
    return line


def call(name: str, *arguments: Any) -> int:
    """A function of the C library; a failure names it."""
    ctypes.set_errno(0)
    result = int(getattr(LIBC, name)(*arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), name)
    return result


# the network


def hold_network() -> int:
    """A network with nothing but a loopback; without privileges, in a user namespace that may make one."""
    try:
        if os.geteuid():
            make_user_namespace()
        call("unshare", NEW_NET)
        raise_loopback()
    except OSError as e:
        print(f"{e.filename}: {e.strerror}", flush=True)
        return FAILED
    print("ready", flush=True)
    while os.read(0, 1):
        pass
    return 0


def make_user_namespace() -> None:
    uid, gid = os.geteuid(), os.getegid()
    call("unshare", NEW_USER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{POD_UID} {uid} 1"), ("gid_map", f"{POD_UID} {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text)


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(handle, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(handle, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


# outside of the new namespaces


def run(spec: Spec) -> int:
    prefer_for_killing()
    for descriptor in spec["namespaces"]:
        call("setns", descriptor, 0)
        os.close(descriptor)
    call("unshare", sum(NAMESPACES.values()))
    alive, kept = os.pipe()
    asks, asked = os.pipe()
    init = os.fork()
    if not init:
        os.close(kept)
        os.close(asks)
        os._exit(be_init(spec, alive, asked))
    os.close(asked)
    map_user(asks, kept)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(init, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    wait_or_end(init)
    return exit_code(os.waitpid(init, 0)[1])


def map_user(asks: int, answers: int) -> None:
    """Gives the user namespace of the first process its one user; only who is outside may. Nothing, if it has ended.

    Both are in one mount namespace: what is at /proc by now is the pod's, where the first process is 1.
    """
    if not os.read(asks, 1):
        return
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/1/{name}").write_text(f"{POD_UID} {POD_UID} 1")
    os.write(answers, b"\n")


def prefer_for_killing() -> None:
    """When memory runs out, this and what it starts go before the control plane."""
    Path("/proc/self/oom_score_adj").write_text("1000")


def wait_or_end(init: int) -> None:
    """Until it ended by itself, or the simulator did. No thread: none can be made once PIDs have a new namespace."""
    ended = os.pidfd_open(init)
    while ended not in (ready := select.select([ended, 0], [], [])[0]):
        if 0 in ready and not os.read(0, 4096):
            os.kill(init, signal.SIGKILL)
            return


def exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


# inside: the first process of the new namespaces, whose end ends all others


def be_init(spec: Spec, alive: int, asked: int) -> int:
    try:
        call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if select.select([alive], [], [], 0)[0]:
            return FAILED  # the launcher died before it could be tied to
        os.setsid()
        os.umask(0o022)
        socket.sethostname(spec["hostname"])
        build_root(spec)
        if not enter_own_user_namespace(alive, asked):
            return FAILED
        child = os.fork()
    except OSError as e:
        print(f"isolation: {e.filename or 'a call'}: {e.strerror}", file=sys.stderr, flush=True)
        return FAILED
    if not child:
        os._exit(become(spec))
    signal.signal(signal.SIGTERM, lambda *_: ask_to_end(child))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    while True:
        pid, status = os.wait()
        if pid == child:
            return exit_code(status)


def enter_own_user_namespace(alive: int, asked: int) -> bool:
    """The pod's processes are counted in it, and make no others. False, if the launcher has died."""
    call("unshare", NEW_USER)
    os.write(asked, b"\n")
    if not os.read(alive, 1):
        return False
    Path(MOST_USER_NAMESPACES).write_text("0")
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    return not select.select([alive], [], [], 0)[0]


def ask_to_end(command: int) -> None:
    """SIGTERM as a container gets it: its first process alone, and not if that has no handler, for then PID 1 ignores it."""
    with contextlib.suppress(OSError):
        if handles_sigterm(Path(f"/proc/{command}/status").read_text()):
            os.kill(command, signal.SIGTERM)


def handles_sigterm(status: str) -> bool:
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def build_root(spec: Spec) -> None:
    """A file system of the system's programs, the pod's own files, and nothing else of this machine."""
    root = Path(spec["root"])
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=16m,mode=0755")
    (root / "tmp").mkdir()
    mount("tmpfs", root / "tmp", "tmpfs", MS_NOSUID | MS_NODEV, SCRATCH)
    for path in spec["read"]:
        attach(root, Path(path), ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    for path in spec["hidden"]:
        if inside(root, path).exists():
            mount("tmpfs", inside(root, path), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755")
    for path, text in etc_files(spec).items():
        inside(root, path).parent.mkdir(parents=True, exist_ok=True)
        inside(root, path).write_text(text)
    make_devices(root)
    (root / "proc").mkdir()
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for path in spec["pod"]:
        attach(root, Path(path), ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    for path in spec["write"]:
        attach(root, Path(path), ATTR_NOSUID | ATTR_NODEV)
    if spec["hosts"]:
        show(Path(spec["hosts"]), inside(root, HOSTS), ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    if spec["message"]:
        inside(root, TERMINATION_LOG).touch()
        show(Path(spec["message"]), inside(root, TERMINATION_LOG), ATTR_NOSUID | ATTR_NODEV)
    mount("none", root, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir(root)
    call("pivot_root", b".", b".")
    call("umount2", b".", MNT_DETACH)
    os.chdir("/")


def etc_files(spec: Spec) -> dict[str, str]:
    return {
        "/etc/passwd": f"root:x:0:0::/:/bin/sh\npod:x:{POD_UID}:{POD_UID}::{spec['cwd']}:/bin/sh\n",
        "/etc/group": f"root:x:0:\npod:x:{POD_UID}:\n",
        "/etc/nsswitch.conf": "hosts: files\n",
        "/etc/host.conf": "multi on\n",  # a name has all the addresses that the file gives it, as a headless Service does
        HOSTS: f"127.0.0.1 localhost {spec['hostname']}\n",
        **spec["files"],
    }


def make_devices(root: Path) -> None:
    (root / "dev").mkdir()
    for name in DEVICES:
        attach(root, Path("/dev") / name, 0)
    (root / "dev" / "shm").mkdir()
    mount("tmpfs", root / "dev" / "shm", "tmpfs", MS_NOSUID | MS_NODEV, SCRATCH)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd{target}")


def attach(root: Path, path: Path, attributes: int) -> None:
    """Shows a path of this machine at the same place; a link stays a link."""
    target = inside(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target.symlink_to(path.readlink())
        return
    if path.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    show(path, target, attributes)


def show(path: Path, target: Path, attributes: int) -> None:
    """Shows a path of this machine at a target that exists."""
    mount(path, target, "", MS_BIND | MS_REC)
    if attributes:
        change = struct.pack("QQQQ", attributes, 0, 0, 0)
        call("syscall", MOUNT_SETATTR, AT_FDCWD, os.fsencode(target), AT_RECURSIVE, change, len(change))


def inside(root: Path, path: str | Path) -> Path:
    return root / str(path).lstrip("/")


def mount(source: str | Path, target: str | Path, kind: str, flags: int, data: str = "") -> None:
    names = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    try:
        call("mount", *names, ctypes.c_ulong(flags), data.encode() or None)
    except OSError as e:
        raise OSError(e.errno, e.strerror, f"mount {target}") from e


# the command itself


def become(spec: Spec) -> int:
    """Gives up every privilege, then turns into the command."""
    if not spec.get("stdin"):
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    give_up_privileges()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    for folder in (spec["workdir"], spec["cwd"]):
        with contextlib.suppress(OSError):
            os.chdir(folder)
            break
    command = spec["command"]
    try:
        os.execvpe(command[0], command, spec["env"])  # noqa: S606 - a shell is what must not come between
    except (OSError, ValueError) as e:
        words = e.strerror if isinstance(e, OSError) else str(e)
        print(f"cannot start {command[0]!r}: {words}", file=sys.stderr, flush=True)
        return 127 if isinstance(e, FileNotFoundError) else 126


def give_up_privileges() -> None:
    join_new_keyring()
    number = 0
    while LIBC.prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0:
        call("prctl", PR_CAPBSET_DROP, number, 0, 0, 0)
        number += 1
    for which, most in LIMITS.items():
        hard = resource.getrlimit(which)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (bound, bound))
    if os.getuid() != POD_UID:
        os.setgroups([])
        os.setresgid(POD_UID, POD_UID, POD_UID)
        os.setresuid(POD_UID, POD_UID, POD_UID)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def join_new_keyring() -> None:
    """Drop the kernel keyring of the user who started the simulator; a kernel without keyrings has none."""
    if number := KEYCTL.get(os.uname().machine):
        LIBC.syscall(number, KEYCTL_JOIN_SESSION_KEYRING, None)


# ways into a pod that runs


def enter(source: int) -> int:
    """Runs a command beside the pod's own. The pod's first process ends it when the pod ends."""
    with os.fdopen(source, "rb") as pipe:
        spec = json.loads(pipe.readline())
    host = Path("/").stat()
    try:
        prefer_for_killing()
        for descriptor in spec["namespaces"]:
            call("setns", descriptor, 0)
            os.close(descriptor)
        if os.path.samestat(Path("/").stat(), host):
            raise OSError(0, "its files are not mounted yet", "the container is starting")
        child = os.fork()
    except OSError as e:
        print(f"cannot enter: {e.filename or 'a call'}: {e.strerror}", file=sys.stderr, flush=True)
        return FAILED
    if not child:
        os._exit(enter_as_user(spec))
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for descriptor in (0, 1, 2):  # the command alone holds them, so that their end is its end
        os.close(descriptor)
    return exit_code(os.waitpid(child, 0)[1])


def enter_as_user(spec: Spec) -> int:
    """In the pod's process namespace, whose first process is in the pod's user namespace."""
    own, pods = Path("/proc/self/ns/user"), Path("/proc/1/ns/user")
    try:
        if os.path.samestat(own.stat(), pods.stat()):
            raise OSError(0, "its user is not there yet", "the container is starting")
        with pods.open("rb") as namespace:
            call("setns", namespace.fileno(), NEW_USER)
    except OSError as e:
        print(f"cannot enter: {e.filename or 'a call'}: {e.strerror}", file=sys.stderr, flush=True)
        return FAILED
    if spec["tty"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    return become(spec)


def connect(channel: int, port: int, *namespaces: int) -> int:
    with socket.socket(fileno=channel) as answer:
        try:
            for descriptor in namespaces:
                call("setns", descriptor, 0)
            connection = socket.create_connection(("127.0.0.1", port), 5)
        except (OSError, OverflowError) as e:
            answer.send(str(e).encode()[:200])
            return FAILED
        connection.settimeout(None)
        socket.send_fds(answer, [b"ok"], [connection.fileno()])
        return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
