"""Pods as real processes: their command, env, files, output, and how they end. Real processes, no API server."""

import contextlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from simulator.node.runtime.isolation import Isolation, Policy, View
from simulator.node.runtime.processes import Launch, Ports, Process, prepare
from tests.support.isolation import needs_isolation

pytestmark = needs_isolation
ISOLATION = Isolation(View.of({}, Path("/nowhere")), Policy())
FILES = {"script": {"train.py": "print('step 1')", "key": "k"}, "token": {"token": "s3cret"}}


def fetch(kind: str, namespace: str, name: str) -> dict[str, str]:
    if name not in FILES:
        raise LookupError(f"{kind} {name!r} is not found")
    return FILES[name]


def pod(command: list[str], **container: object) -> dict:
    spec = {
        "containers": [{"name": "pytorch", "command": command, **container}],
        "volumes": [
            {"name": "code", "configMap": {"name": "script"}},
            {"name": "secret", "secret": {"secretName": "token"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
        ],
    }
    owners = [{"kind": "PyTorchJob", "uid": "job1", "controller": True}]
    meta = {"name": "p-0", "namespace": "ai", "uid": "u1", "labels": {"team": "x"}, "ownerReferences": owners}
    return {"metadata": meta, "spec": spec}


def launch(home: Path, command: list[str], **container: object) -> Launch:
    return prepare(pod(command, **container), home, fetch, Ports(), restart=0)


def output(made: Launch) -> tuple[int, str]:
    code = Process(made, ISOLATION).wait()
    return code, made.log.read_text()


def mount(name: str, path: str) -> list[dict[str, str]]:
    return [{"name": name, "mountPath": path}]


def test_it_runs_a_script_from_a_config_map(tmp_path: Path) -> None:
    made = launch(tmp_path, ["python3", "/app/train.py"], volumeMounts=mount("code", "/app"))
    assert output(made) == (0, "step 1\n")


def test_it_passes_exit_codes_and_signals_on(tmp_path: Path) -> None:
    assert output(launch(tmp_path, ["sh", "-c", "echo no >&2; exit 3"])) == (3, "no\n")
    assert output(launch(tmp_path, ["sh", "-c", "kill -9 $$$$"]))[0] == 137


def test_it_says_when_a_command_is_not_there(tmp_path: Path) -> None:
    code, text = output(launch(tmp_path, ["no-such-command"]))
    assert (code, "cannot start 'no-such-command'" in text) == (127, True)


def test_it_gives_the_environment_of_a_container(tmp_path: Path) -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)2 $(UNKNOWN) $$(A)"},
        {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "TEAM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "script", "key": "key"}}},
    ]
    made = launch(tmp_path, ["true"], env=env, envFrom=[{"secretRef": {"name": "token"}, "prefix": "S_"}])
    assert {name: made.env[name] for name in ("A", "B", "ME", "TEAM", "KEY", "S_token", "HOSTNAME")} == {
        **{"A": "1", "B": "12 $(UNKNOWN) $(A)", "ME": "p-0", "TEAM": "x", "KEY": "k"},
        **{"S_token": "s3cret", "HOSTNAME": "p-0"},
    }


def test_it_keeps_the_simulator_s_own_environment_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "x")
    assert "DATABASE_PASSWORD" not in launch(tmp_path, ["true"]).env


def test_it_lets_the_pods_of_a_job_meet_on_the_loopback(tmp_path: Path) -> None:
    env = [{"name": "MASTER_ADDR", "value": "p-master-0"}, {"name": "MASTER_PORT", "value": "23456"}]
    ports = Ports()
    made = [prepare(pod(["true"], env=env), tmp_path, fetch, ports, restart=n) for n in (0, 1)]
    assert made[0].env["MASTER_ADDR"] == "127.0.0.1"
    assert made[0].env["MASTER_PORT"] == made[1].env["MASTER_PORT"] != "23456"


def test_it_replaces_mount_paths_and_only_those(tmp_path: Path) -> None:
    made = launch(
        tmp_path, ["x", "/app/a", "--out=/app", "/application", "/my/app"], volumeMounts=mount("code", "/app")
    )
    place = str(tmp_path / "pods" / "u1" / "files" / "code")
    assert made.command[1:] == [f"{place}/a", f"--out={place}", "/application", "/my/app"]


def test_it_keeps_a_claim_when_the_pod_is_gone(tmp_path: Path) -> None:
    made = launch(tmp_path, ["sh", "-c", "echo 7 > /data/checkpoint"], volumeMounts=mount("data", "/data"))
    assert output(made)[0] == 0
    assert (tmp_path / "volumes" / "ai" / "disk" / "checkpoint").read_text() == "7\n"


def test_it_refuses_files_outside_their_volume(tmp_path: Path) -> None:
    given = pod(["true"], volumeMounts=mount("code", "/app"))
    given["spec"]["volumes"][0]["configMap"]["items"] = [{"key": "key", "path": "../../evil"}]
    with pytest.raises(ValueError, match="outside itself"):
        prepare(given, tmp_path, fetch, Ports(), restart=0)


def test_it_names_what_is_missing(tmp_path: Path) -> None:
    given = pod(["true"], volumeMounts=mount("code", "/app"))
    given["spec"]["volumes"][0]["configMap"]["name"] = "gone"
    with pytest.raises(LookupError, match="ConfigMap 'gone' is not found"):
        prepare(given, tmp_path, fetch, Ports(), restart=0)


def test_it_terminates_politely(tmp_path: Path) -> None:
    script = "import signal,sys,time;signal.signal(15,lambda *_:sys.exit(5));print('up',flush=True);time.sleep(60)"
    made = launch(tmp_path, ["python3", "-c", script])
    process = Process(made, ISOLATION)
    until(lambda: made.log.read_text() == "up\n")
    process.terminate()
    assert process.wait() == 5


def test_only_the_first_process_of_a_container_is_asked_to_end(tmp_path: Path) -> None:
    """Its child would end as well, if it were asked; the rest is killed when the first has ended."""
    child = "trap 'echo child asked' TERM; while :; do sleep 0.05; done"
    first = f"trap 'echo asked; sleep 0.3; exit 4' TERM; sh -c \"{child}\" & echo up; while :; do sleep 0.05; done"
    made = launch(tmp_path, ["sh", "-c", first])
    process = Process(made, ISOLATION)
    until(lambda: made.log.read_text() == "up\n")
    process.terminate()
    assert process.wait() == 4
    assert made.log.read_text() == "up\nasked\n"


def test_a_first_process_without_a_handler_ignores_it_as_in_a_container(tmp_path: Path) -> None:
    made = launch(tmp_path, ["sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.05; done; echo worked on"])
    process = Process(made, ISOLATION)
    until(lambda: made.log.read_text() == "up\n")
    process.terminate()
    (made.work / "go").touch()
    assert (process.wait(), made.log.read_text()) == (0, "up\nworked on\n")


def test_it_leaves_nothing_behind_when_the_simulator_is_killed(tmp_path: Path) -> None:
    simulator = f"""
from pathlib import Path
from simulator.node.runtime.isolation import Isolation, Policy, View
from simulator.node.runtime.processes import Ports, Process, prepare
made = prepare({pod(["sh", "-c", "setsid sleep 4747 & echo up; wait"])!r}, Path({str(tmp_path)!r}), None, Ports(), restart=0)
Process(made, Isolation(View.of({{}}, Path("/nowhere")), Policy())).wait()
"""
    started = subprocess.Popen([sys.executable, "-c", simulator])
    log = tmp_path / "logs" / "u1" / "0.log"
    until(lambda: log.exists() and log.read_text() == "up\n")
    until(lambda: sleeping())
    started.kill()
    started.wait()
    until(lambda: not sleeping())


def sleeping() -> list[str]:
    """The pod's process that left its session, as this machine sees it."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [file.parent.name] if file.read_bytes() == b"sleep\0004747\0" else []
    return found


def until(true: object, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_pods_that_start_at_once_are_given_the_same_port():
    ports, at_once = Ports(), threading.Barrier(8)

    def pod_of(job: str) -> int:
        at_once.wait()
        return ports.of(job)

    with ThreadPoolExecutor(8) as threads:
        for job in map(str, range(200)):
            assert len(set(threads.map(pod_of, [job] * 8))) == 1
