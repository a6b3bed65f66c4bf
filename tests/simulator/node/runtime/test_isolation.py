"""A pod's process as an attacker on the control plane's machine: each try must fail. Real processes, no API server."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from simulator.node.runtime import launcher
from simulator.node.runtime.isolation import Isolation, Policy
from simulator.node.runtime.processes import Ports, Process, prepare
from tests.simulator.node.isolated_pods import SECRET, fetch, home, pod
from tests.support.isolation import needs_isolation

__all__ = ["home"]

Attack = Callable[..., str]


@pytest.fixture
def attack(home: Path) -> Attack:
    """What the script printed, run in a pod."""
    member = home / "simulator" / "north"
    isolation = Isolation.of({**os.environ, "CONVOY_PROCESS_PATHS": str(home.parent)}, member)

    def run(script: str, uid: str = "u1", **spec: object) -> str:
        launch = prepare(pod(script, uid, **spec), member, fetch, Ports(), restart=0)  # type: ignore[arg-type]
        Process(launch, isolation).wait()
        return launch.log.read_text()

    return run


@needs_isolation
@pytest.mark.parametrize("name", ["encryption-key", "convoy.sqlite3", "admin-password", "broker/server.conf"])
def test_it_cannot_read_the_home(attack: Attack, home: Path, name: str) -> None:
    """Not even where the admin shows it a folder that the home lies in."""
    assert "FileNotFoundError" in attack(f"print(open({str(home / name)!r}).read())")


@needs_isolation
def test_it_cannot_find_the_secret_in_any_process(attack: Attack) -> None:
    said = attack(
        """
        import os
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("environ", "cmdline", "maps", "root/etc/shadow"):
                try:
                    print(pid, name, open(f"/proc/{pid}/{name}", "rb").read())
                except OSError as e:
                    print(pid, name, e)
        """
    )
    assert "environ" in said
    assert SECRET not in said


@needs_isolation
def test_it_cannot_read_the_environment_of_the_simulator(attack: Attack) -> None:
    said = attack(f"import os; print(dict(os.environ)); print(open('/proc/{os.getpid()}/environ').read())")
    assert "FileNotFoundError" in said
    assert SECRET not in said


@needs_isolation
def test_it_cannot_signal_the_simulator(attack: Attack) -> None:
    said = attack(f"import os; os.kill({os.getpid()}, 9)")
    assert "ProcessLookupError" in said
    assert "ProcessLookupError" in attack("import os; os.kill(-1, 9)", "u2")


@needs_isolation
def test_it_cannot_trace_another_process(attack: Attack) -> None:
    said = attack(
        f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        for pid in (1, {os.getpid()}, {os.getppid()}):
            print("attached", libc.ptrace(16, pid, 0, 0))
        """
    )
    assert said.count("attached -1") == 3


@needs_isolation
def test_it_cannot_reach_a_server_of_this_machine(attack: Attack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0convoy-attack")
        abstract.listen()
        said = attack(
            f"""
            import socket
            for family, address in ((socket.AF_INET, ("127.0.0.1", {broker.getsockname()[1]})),
                                    (socket.AF_INET, ("169.254.169.254", 80)), (socket.AF_UNIX, "\\0convoy-attack")):
                try:
                    socket.socket(family).connect(address)
                    print("connected to", address)
                except OSError as e:
                    print("no", e)
            """
        )
    assert said.count("no [") == 3, said


@needs_isolation
def test_it_inherits_no_descriptor(attack: Attack) -> None:
    descriptors = [os.open("/etc/hosts", os.O_RDONLY) for _ in range(3)]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    said = attack("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    assert json.loads(said) == [0, 1, 2, 3]
    for descriptor in descriptors:
        os.close(descriptor)


@needs_isolation
def test_it_has_no_privileges_and_gains_none(attack: Attack) -> None:
    said = attack(
        """
        import os
        print(*(line for line in open("/proc/self/status") if line.startswith(("Cap", "NoNew", "Uid"))))
        for name, call in (("setuid", lambda: os.setuid(0)), ("chown", lambda: os.chown("/tmp", 0, 0)),
                           ("host", lambda: __import__("socket").sethostname("x")), ("root", lambda: os.chroot("/tmp"))):
            try:
                call()
                print(name, "worked")
            except OSError as e:
                print(name, "refused")
        """
    )
    assert said.count("refused") == 4, said
    assert "NoNewPrivs:\t1" in said
    assert said.count("0" * 16) == 5, "no capability in any set"
    assert f"Uid:\t{launcher.POD_UID}\t" in said


@needs_isolation
@pytest.mark.parametrize(
    "path", ["/x", "/usr/bin/x", "/etc/passwd", sys.prefix + "/x", "/dev/x", "/proc/sys/kernel/hostname"]
)
def test_it_cannot_write_outside_its_own_files(attack: Attack, path: str) -> None:
    said = attack(f"open({path!r}, 'w').write('x'); print('written')")
    assert "written" not in said
    assert "Error" in said


@needs_isolation
def test_it_cannot_change_its_own_secrets_on_disk(attack: Attack, home: Path) -> None:
    """Or the simulator would follow its links when it writes them again."""
    said = attack(
        "import os; place = '/s'; os.symlink('/etc', '/s/x')",
        volumes=[{"name": "s", "secret": {"secretName": "s"}}],
        container={"volumeMounts": [{"name": "s", "mountPath": "/s"}]},
    )
    assert "Error" in said
    assert not (home / "simulator" / "north" / "pods" / "u1" / "files" / "s" / "x").is_symlink()


@needs_isolation
def test_its_environment_never_reaches_what_has_privileges(attack: Attack) -> None:
    """A library of the pod's own, preloaded, would run as the simulator."""
    said = attack("pass", container={"env": [{"name": "LD_PRELOAD", "value": "/no/such.so"}]})
    assert said.count("cannot be preloaded") == 1


@needs_isolation
def test_it_does_not_see_the_claims_of_others(attack: Attack, home: Path) -> None:
    other = home / "simulator" / "north" / "volumes" / "team-b" / "disk"
    other.mkdir(parents=True)
    (other / "weights").write_text(SECRET)
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/d", "subPath": "../../team-b/disk"}]}
    said = attack(
        "import os; print(open('/d/weights').read())",
        volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "mine"}}],
        container=mounts,
    )
    assert "FileNotFoundError" in said


@pytest.mark.parametrize("claim", ["..", ".", "a/b", "../team-b/disk", ""])
def test_it_refuses_claims_that_are_paths(tmp_path: Path, claim: str) -> None:
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
    mounts = {"volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    with pytest.raises(ValueError, match="not a valid volume name"):
        prepare(pod("", "u1", volumes=volumes, container=mounts), tmp_path, fetch, Ports(), restart=0)


@needs_isolation
def test_its_appetite_is_bounded(attack: Attack) -> None:
    said = attack(
        "import resource as r; print([r.getrlimit(x)[1] for x in (r.RLIMIT_NPROC, r.RLIMIT_NOFILE, r.RLIMIT_CORE)]);"
        "print(open('/proc/self/oom_score_adj').read())"
    )
    assert said.split("\n")[0] == "[1024, 4096, 0]"
    assert "1000" in said


@needs_isolation
def test_only_pods_of_one_job_meet(home: Path) -> None:
    member = home / "simulator" / "north"
    isolation = Isolation.of(os.environ, member)
    listens = pod(
        "import socket, time\ns = socket.create_server(('127.0.0.1', 7777)); print('up', flush=True); s.accept()", "u1"
    )
    launch = prepare(listens, member, fetch, Ports(), restart=0)
    server = Process(launch, isolation)
    wait_for(lambda: launch.log.read_text() == "up\n")
    knock = "import socket; socket.create_connection(('127.0.0.1', 7777)); print('met')"
    stranger = prepare(pod(knock, "u2", job="job2"), member, fetch, Ports(), restart=0)
    Process(stranger, isolation).wait()
    assert "ConnectionRefusedError" in stranger.log.read_text()
    friend = prepare(pod(knock, "u3"), member, fetch, Ports(), restart=0)
    Process(friend, isolation).wait()
    assert friend.log.read_text() == "met\n"
    server.kill()
    server.wait()


def wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(6000):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("it did not happen in time")


WITHOUT_ADMIN = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 21, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
REFUSED = """
import os
from pathlib import Path
from simulator.node.runtime.isolation import Isolation, Policy, View

__all__ = ["home"]
home = Path({home!r})
print(Isolation(View.of({{}}, home), Policy()).refusal("default", home))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up a privilege that only root has")
def test_nothing_runs_where_the_kernel_does_not_isolate(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WITHOUT_ADMIN, REFUSED.format(home=str(tmp_path))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "cannot isolate the processes of pods: unshare: Operation not permitted" in done.stdout, done.stderr


def policy(tmp_path: Path, real: object = (), **environ: str) -> Policy:
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps({"real": list(real)}) if real is not None else "")  # type: ignore[call-overload]
    return Policy.of({"CONVOY_FLEET_FILE": str(file), **environ})


def test_only_the_namespaces_that_the_admin_names_run_processes(tmp_path: Path) -> None:
    assert not policy(tmp_path).refusal("default")
    assert "CONVOY_PROCESS_PODS does not name it" in policy(tmp_path).refusal("team-a")
    assert not policy(tmp_path, CONVOY_PROCESS_PODS="team-a,team-b").refusal("team-b")
    assert policy(tmp_path, CONVOY_PROCESS_PODS="team-a").refusal("default")
    assert policy(tmp_path, CONVOY_PROCESS_PODS="off").refusal("off")
    assert policy(tmp_path, CONVOY_PROCESS_PODS="").refusal("default")
    assert not policy(tmp_path, CONVOY_PROCESS_PODS="*").refusal("anything")


def test_beside_a_real_cluster_none_runs_unless_asked(tmp_path: Path) -> None:
    assert "beside real clusters (prod)" in policy(tmp_path, ["prod"]).refusal("default")
    assert not policy(tmp_path, ["prod"], CONVOY_PROCESS_PODS="default").refusal("default")
    assert "until the control plane" in policy(tmp_path, None).refusal("default")
