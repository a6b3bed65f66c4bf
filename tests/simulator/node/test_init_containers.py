"""The init containers of process pods run one after another before the pod's own, as a kubelet runs them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.kube.resources import PODS
from fleet.member.client import MemberClient
from fleet.member.errors import MemberRefused
from tests.simulator.casting import calling, member, until

Pod = dict[str, Any]
PATH = PODS.path("default", "p")
ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemberClient]:
    monkeypatch.setenv("CONVOY_PROCESS_PODS", "*")
    tmp_path.chmod(0o755)
    with member(tmp_path) as made, calling(made) as client:
        yield client


def container(name: str, script: str, image: str = "train") -> dict[str, Any]:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    return {"name": name, "image": image, "command": ["sh", "-c", script], "volumeMounts": mounts}


def create(client: MemberClient, *init: dict[str, Any], main: str = "true", restart: str = "Never") -> None:
    spec = {"initContainers": [*init], "containers": [container("main", main)], "restartPolicy": restart}
    spec |= {"volumes": [{"name": "shared", "emptyDir": {}}]}
    client.create(
        PODS.path("default"), {"metadata": {"name": "p", "annotations": {"convoy.dev/run": "process"}}, "spec": spec}
    )


def when(client: MemberClient, holds: Callable[[Pod], object]) -> Pod:
    """The pod once this holds."""
    seen: list[Pod] = []

    def look() -> bool:
        seen[:] = [client.get(PATH)]
        return bool(holds(seen[0]))

    until(look)
    return seen[0]


def phase(pod: Pod) -> str:
    return str((pod.get("status") or {}).get("phase"))


def states(pod: Pod) -> list[str]:
    return [next(iter(each["state"])) for each in (pod.get("status") or {}).get("initContainerStatuses") or []]


def condition(pod: Pod, kind: str) -> dict[str, Any]:
    [found] = [each for each in pod["status"]["conditions"] if each["type"] == kind]
    return dict(found)


def test_they_run_in_turn_and_leave_their_files_to_the_pods_own_container(client: MemberClient, tmp_path: Path) -> None:
    first = container("first", "echo one >> /shared/lines; echo mine > own; echo said")
    other = container("from-elsewhere", "exit 3", image="git-sync:4")
    second = container("second", "cat own; echo two >> /shared/lines; until [ -e /shared/go ]; do sleep 0.1; done")
    create(client, first, other, second, main="cat /shared/lines")
    waiting = when(client, lambda pod: states(pod) == ["terminated", "terminated", "running"])
    assert phase(waiting) == "Pending" and waiting["status"]["podIP"]
    [main] = waiting["status"]["containerStatuses"]
    assert main["state"] == {"waiting": {"reason": "PodInitializing"}} and not main["ready"]
    unmet = condition(waiting, "Initialized")
    assert (unmet["status"], unmet["reason"]) == ("False", "ContainersNotInitialized")
    assert unmet["message"] == "containers with incomplete status: [second]"
    assert client.get_text(f"{PATH}/log", {"container": "first"}) == "said\n"
    with pytest.raises(MemberRefused, match='container "main" in pod "p" is waiting to start: PodInitializing'):
        client.get_text(f"{PATH}/log", {})
    next(tmp_path.glob("**/pods/*/volumes/shared")).joinpath("go").touch()
    ended = when(client, lambda pod: phase(pod) == "Succeeded")
    assert client.get_text(f"{PATH}/log", {}) == "one\ntwo\n"
    assert "cat: own" in client.get_text(f"{PATH}/log", {"container": "second"}), "its working directory is its own"
    assert states(ended) == ["terminated"] * 3 and condition(ended, "Initialized")["status"] == "True"


@pytest.mark.parametrize("restart", ["Never", "OnFailure"])
def test_one_that_fails_fails_its_pod_or_is_started_again(client: MemberClient, restart: str) -> None:
    script = "echo tried; echo why > /dev/termination-log; [ -e /shared/tried ] || { touch /shared/tried; exit 86; }"
    create(client, container("check", script), container("later", "true"), main="echo trained", restart=restart)
    over = when(client, lambda pod: phase(pod) in ("Failed", "Succeeded"))
    [check, later], [main] = over["status"]["initContainerStatuses"], over["status"]["containerStatuses"]
    if restart == "Never":
        assert phase(over) == "Failed" and main["state"] == {"waiting": {"reason": "PodInitializing"}}
        ended = check["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"]) == (86, "Error", "why\n")
        assert later["state"] == {"waiting": {"reason": "PodInitializing"}}
        table = client.get(f"{PATH}", accept=ACCEPT)
        assert table["rows"][0]["cells"][2] == "Init:Error"
        return
    assert phase(over) == "Succeeded" and main["restartCount"] == 0
    assert (check["restartCount"], check["lastState"]["terminated"]["exitCode"]) == (1, 86)
    assert client.get_text(f"{PATH}/log", {"container": "check", "previous": "true"}) == "tried\n"
