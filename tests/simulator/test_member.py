"""A simulated member as its users see it: through its API, with jobs, faults and restarts. Real sockets throughout."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.kube.resources import CONFIG_MAPS, JOBS, NODES, POD_GROUPS, PODS, PYTORCH_JOBS, SERVICES
from fleet.member.client import MemberClient
from fleet.member.errors import MemberAway, MemberError
from simulator.fault_parser import BadFault, parse
from simulator.member import SimulatedMember
from tests.simulator.casting import (
    NAMESPACE,
    batch_job,
    calling,
    expect,
    member,
    nodes,
    phases,
    pytorch_job,
    submit,
    truths,
    until,
)
from tests.support.isolation import needs_isolation

PAIR = tuple[SimulatedMember, MemberClient]


@pytest.fixture
def north(tmp_path: Path) -> Iterator[PAIR]:
    with member(tmp_path) as made, calling(made) as client:
        yield made, client


def group(name: str, need: int) -> dict:
    meta = {"name": name, "namespace": NAMESPACE}
    kind = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    return {**kind, "metadata": meta, "spec": {"minMember": need}}


def test_it_runs_a_training_job_to_its_end(north: PAIR) -> None:
    _, client = north
    submit(client, pytorch_job(duration="20s"))
    expect(client, "llama", "Succeeded")
    job = client.get(PYTORCH_JOBS.path(NAMESPACE, "llama"))
    assert [each["type"] for each in job["status"]["conditions"]] == ["Created", "Running", "Succeeded"]
    assert job["status"]["replicaStatuses"] == {"Master": {"succeeded": 1}, "Worker": {"succeeded": 2}}
    assert len(client.list(SERVICES.path(NAMESPACE), {"labelSelector": "training.kubeflow.org/job-name"})["items"]) == 3
    until(lambda: set(phases(client).values()) == {"Succeeded"})
    assert "step=10 loss=" in client.get_text(PODS.path(NAMESPACE, "llama-worker-0", "log"))


def test_it_takes_everything_away_with_the_job(north: PAIR) -> None:
    _, client = north
    submit(client, pytorch_job())
    expect(client, "llama", "Running")
    client.delete(PYTORCH_JOBS.path(NAMESPACE, "llama"))
    until(lambda: not phases(client))


def test_a_gated_pod_is_bound_once_its_gates_are_lifted_which_are_only_removed(north: PAIR) -> None:
    _, client = north
    path, gates = PODS.path(NAMESPACE, "held"), [{"name": "example.com/a"}, {"name": "example.com/b"}]
    spec = {"containers": [{"name": "x", "image": "i"}], "schedulingGates": gates}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "held", "namespace": NAMESPACE}, "spec": spec}
    [condition] = client.create(PODS.path(NAMESPACE), body)["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")
    free = {**body, "metadata": {"name": "free", "namespace": NAMESPACE}, "spec": {"containers": spec["containers"]}}
    client.create(PODS.path(NAMESPACE), free)
    until(lambda: phases(client)["free"] == "Running")
    assert phases(client)["held"] == "Pending" and nodes(client)["held"] == ""
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "held"},
        "target": {"kind": "Node", "name": "n"},
    }
    with pytest.raises(MemberError, match="non-empty .spec.schedulingGates"):
        client.create(PODS.path(NAMESPACE, "held", "binding"), binding)
    client.merge_patch(path, {"spec": {"schedulingGates": gates[1:]}})
    with pytest.raises(MemberError, match="only deletion is allowed, but found new scheduling gate 'example.com/a'"):
        client.merge_patch(path, {"spec": {"schedulingGates": gates}})
    client.merge_patch(path, {"spec": {"schedulingGates": None}})
    until(lambda: phases(client)["held"] == "Running")
    with pytest.raises(MemberError, match="cannot be set until all schedulingGates have been cleared"):
        client.create(PODS.path(NAMESPACE), {**free, "metadata": {"name": "x"}, "spec": {**spec, "nodeName": "n"}})


def test_it_starts_a_gang_whole_when_there_is_room_for_all(north: PAIR) -> None:
    _, client = north
    submit(client, pytorch_job("first", workers=1, gpus=4))
    expect(client, "first", "Running")
    client.create(POD_GROUPS.path(NAMESPACE), group("g", 3))
    submit(client, pytorch_job("gang", gpus=4, labels={"scheduling.x-k8s.io/pod-group": "g"}))

    def words() -> str:
        pod = client.get(PODS.path(NAMESPACE, "gang-worker-0"))
        return " ".join(c.get("message") or "" for c in pod["status"].get("conditions") or [])

    until(lambda: "gang-worker-0" in phases(client) and "Pod group needs 3 together, 2 can be placed" in words())
    assert [node for name, node in nodes(client).items() if name.startswith("gang")] == ["", "", ""]
    client.delete(PYTORCH_JOBS.path(NAMESPACE, "first"))
    expect(client, "gang", "Running")


def test_it_restarts_a_failing_container_until_it_succeeds(north: PAIR) -> None:
    _, client = north
    submit(client, pytorch_job(workers=1, duration="2s", exit_code="3", exit_code_times="2"))
    expect(client, "llama", "Succeeded")
    pod = client.get(PODS.path(NAMESPACE, "llama-master-0"))
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 2


def test_it_fails_a_job_that_must_not_restart(north: PAIR) -> None:
    made, client = north
    submit(client, pytorch_job(restart="Never"))
    until(lambda: phases(client).get("llama-worker-1") == "Running")
    made.disturb(parse(["crash-pod", f"{NAMESPACE}/llama-worker-1", "9"]))
    expect(client, "llama", "Failed")
    state = client.get(PODS.path(NAMESPACE, "llama-worker-1"))["status"]["containerStatuses"][0]["state"]
    assert state["terminated"]["exitCode"] == 9


def test_it_suspends_and_resumes(north: PAIR) -> None:
    _, client = north
    submit(client, pytorch_job())
    expect(client, "llama", "Running")
    path = PYTORCH_JOBS.path(NAMESPACE, "llama")
    client.merge_patch(path, {"spec": {"runPolicy": {"suspend": True}}})
    expect(client, "llama", "Suspended")
    until(lambda: not phases(client))
    client.merge_patch(path, {"spec": {"runPolicy": {"suspend": False}}})
    expect(client, "llama", "Running")


def test_it_runs_a_batch_job(north: PAIR) -> None:
    _, client = north
    submit(client, batch_job("sweep", {"parallelism": 2, "completions": 3}, duration="5s"))
    expect(client, "sweep", "Complete", JOBS)
    assert client.get(JOBS.path(NAMESPACE, "sweep"))["status"]["succeeded"] == 3
    assert len(phases(client)) == 3


def uid_of(client: MemberClient) -> str:
    pods = client.list(PODS.path(NAMESPACE))["items"]
    return next((pod["metadata"]["uid"] for pod in pods if pod["metadata"]["name"] == "llama-master-0"), "")


def test_it_loses_the_pods_of_a_node_and_gets_the_node_back(north: PAIR) -> None:
    made, client = north
    submit(client, pytorch_job(workers=1))
    expect(client, "llama", "Running")
    node, lost = nodes(client)["llama-master-0"], uid_of(client)
    made.disturb(parse(["node-down", node]))
    until(lambda: "Unknown" in str(client.get(NODES.path(name=node))["status"]["conditions"]))
    until(lambda: client.get(PODS.path(NAMESPACE, "llama-master-0"))["metadata"].get("deletionTimestamp"))
    made.disturb(parse(["node-up", node]))
    until(lambda: not client.get(NODES.path(name=node))["spec"].get("taints"))
    until(lambda: uid_of(client) != lost)
    expect(client, "llama", "Running")


def test_it_goes_on_while_its_api_is_away(north: PAIR) -> None:
    made, client = north
    submit(client, pytorch_job())
    names = ("llama-worker-1", "llama-worker-0", "llama-master-0")
    until(lambda: phases(client) == dict.fromkeys(names, "Running"))
    made.disturb(parse(["away"]))
    with pytest.raises(MemberAway):
        client.list(PODS.path())
    for name in names:
        assert made._manager is not None and made._manager.crash_pod(f"{NAMESPACE}/{name}", 0)
    made.disturb(parse(["back"]))
    expect(client, "llama", "Succeeded")


def test_it_gets_there_although_the_api_is_flaky(north: PAIR) -> None:
    made, client = north
    submit(client, pytorch_job(duration="5s"))
    for fault in ("flaky 0.3", "reset 0.2"):
        made.disturb(parse(fault.split()))

    def succeeded() -> bool:
        try:
            return "Succeeded" in truths(client, "llama")
        except MemberAway:
            return False

    until(succeeded)
    made.disturb(parse(["back"]))
    assert set(phases(client)) <= {"llama-master-0", "llama-worker-0", "llama-worker-1"}


def test_it_hears_what_it_missed_when_watches_were_stale(north: PAIR) -> None:
    made, client = north
    made.disturb(parse(["stale", "on"]))
    submit(client, pytorch_job(duration="5s"))
    made.disturb(parse(["stale", "off"]))
    expect(client, "llama", "Succeeded")


def test_it_refuses_faults_that_hit_nothing(north: PAIR) -> None:
    made, _ = north
    with pytest.raises(BadFault, match="no pod ai/nobody runs on north"):
        made.disturb(parse(["crash-pod", "ai/nobody"]))
    with pytest.raises(BadFault, match="not found"):
        made.disturb(parse(["node-down", "nowhere"]))


def test_it_resumes_where_it_was_after_a_restart(tmp_path: Path) -> None:
    with member(tmp_path, time_scale=1.0) as made, calling(made) as client:
        submit(client, pytorch_job(duration="1h"))
        expect(client, "llama", "Running")
        before = client.get(PODS.path(NAMESPACE, "llama-master-0"))
    with member(tmp_path, time_scale=3600.0) as again, calling(again) as client:
        expect(client, "llama", "Succeeded")
        after = client.get(PODS.path(NAMESPACE, "llama-master-0"))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["startTime"] == before["status"]["startTime"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0
    assert again.access().server == made.access().server


SCRIPT = """
import os, socket, sys
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(address) as server:
        print("sum", sum(server.accept()[0].recv(1)[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)))
else:
    while True:
        try:
            socket.create_connection(address).send(bytes([int(os.environ["RANK"])]))
            break
        except ConnectionRefusedError:
            pass
"""


@needs_isolation
def test_it_runs_a_real_script_in_processes_that_talk(north: PAIR) -> None:
    _, client = north
    data = {"metadata": {"name": "code"}, "data": {"train.py": SCRIPT}}
    client.create(CONFIG_MAPS.path(NAMESPACE), {"apiVersion": "v1", "kind": "ConfigMap", **data})
    job = pytorch_job(run="process")
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        spec = role["template"]["spec"] = {
            "volumes": [{"name": "code", "configMap": {"name": "code"}}],
            "containers": [{"name": "pytorch", "image": "i", "command": ["python3", "/app/train.py"]}],
        }
        spec["containers"][0]["volumeMounts"] = [{"name": "code", "mountPath": "/app"}]
    submit(client, job)
    expect(client, "llama", "Succeeded")
    assert client.get_text(PODS.path(NAMESPACE, "llama-master-0", "log")) == "sum 3\n"


@needs_isolation
def test_a_process_knows_the_addresses_of_its_pod_and_node_from_its_first_start(north: PAIR) -> None:
    _, client = north
    job = pytorch_job(run="process")
    fields = {"POD": "status.podIP", "NODE": "status.hostIP"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    container = {"name": "pytorch", "image": "i", "command": ["/bin/sh", "-c", "echo $POD $NODE"], "env": env}
    for role in job["spec"]["pytorchReplicaSpecs"].values():
        role["template"]["spec"] = {"containers": [container]}
    submit(client, job)
    expect(client, "llama", "Succeeded")
    status = client.get(PODS.path(NAMESPACE, "llama-master-0"))["status"]
    assert client.get_text(PODS.path(NAMESPACE, "llama-master-0", "log")).split() == [status["podIP"], status["hostIP"]]


def test_it_keeps_the_log_of_the_run_before_a_restart(north: PAIR) -> None:
    made, client = north
    spec = {"restartPolicy": "Always", "containers": [{"name": "main", "image": "i"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "again"}, "spec": spec}
    client.create(PODS.path(NAMESPACE), body)
    path = PODS.path(NAMESPACE, "again")
    until(lambda: (client.get(path).get("status") or {}).get("phase") == "Running")
    with pytest.raises(MemberError, match='previous terminated container "main" in pod "again" not found'):
        client.get_text(f"{path}/log", {"previous": "true"})
    made.disturb(parse(["crash-pod", f"{NAMESPACE}/again", "3"]))
    until(lambda: client.get(path)["status"]["containerStatuses"][0]["restartCount"] == 1)
    former = client.get_text(f"{path}/log", {"previous": "true"})
    until(lambda: client.get_text(f"{path}/log") != former)
    assert client.get_text(f"{path}/log", {"previous": "true", "tailLines": "1"}).count("\n") <= 1
