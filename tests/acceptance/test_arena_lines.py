"""1.1.11 to 1.1.13, 1.3.3 and 1.3.10: the command lines of two documents, pasted as they are, against a running fleet.

Their nodes are simulated. Names of nodes and pods, ages, and what a training prints are the fleet's own; all else is compared
with what the documents show.
"""

import re
import subprocess
from functools import partial

import pytest

from fleet.kube.resources import NODES
from fleet.models import Node
from jobs.models import Dependent, Job
from tests.acceptance.builders import POLICY, label
from tests.cli.builders import Convoy
from tests.support import transcripts
from tests.support.kubectl import served
from tests.support.transcripts import Step

pytestmark = pytest.mark.django_db(transaction=True)
SLOW = 4.0
"""Of simulated time: the documents' jobs run for 10 minutes, in which many commands have to run."""


def shape(text: str) -> list[list[str]]:
    """The cells of each line, without what differs from run to run: ages, nodes, random suffixes of pods."""
    text = re.sub(r"\b\d+[smhdy](\d+[smh])?\b", "AGE", text)
    text = re.sub(r"(-launcher)-[a-z0-9]{5}\b", r"\1-SUFFIX", text)
    text = re.sub(r"\bcn-shanghai\.[\d.]+|\bnorth-pool\d-0\b", "NODE", text)
    text = re.sub(r"INFO\[\d+\]", "INFO", text).replace("`convoy ", "`arena ")
    return [line.split() for line in text.splitlines() if set(line) - set(" -")]


def pasted(convoy, step: Step) -> str:
    said = convoy(*step.words)
    assert said.code == 0, f"{step.line}: {said.out}{said.err}"
    return said.out


def test_1_1_11_and_12_the_elastic_job_of_the_document_is_submitted_as_it_is_written_there(
    world, convoy, admin, tmp_path
):
    world.member("north", 0, 8, 1, time_scale=SLOW)
    labels = {"metadata": {"labels": {"instance_type": "spot-launcher"}}}
    world.clients["north"].merge_patch(NODES.path(name="north-pool0-0"), labels)
    world.until(lambda: Node.objects.filter(labels__instance_type="spot-launcher").exists(), "the label is seen")
    world.apply(POLICY)
    submit, pods, get = transcripts.read("elastic_training")
    assert shape(pasted(convoy, submit)) == shape(submit.printed)
    world.expect("fine-tuning-elastic", "Running")
    world.until(lambda: len(world.pods("north")) == 9, "all pods are made")
    with served(tmp_path) as door:
        said = door.as_user("ada").says(*pods.words)
    # At the fleet a pod's name ends in its cluster, which is a column too.
    assert [row[:5] for row in shape(said.replace(".north ", " "))] == shape(pods.printed)
    page = shape(pasted(convoy, get))
    assert page[:5] == [["Name:", "fine-tuning-elastic"], ["Status:", "RUNNING"], ["Namespace:", "default"],
                        ["Priority:", "N/A"], ["Trainer:", "ETJOB"]]  # fmt: skip
    assert page[8] == ["fine-tuning-elastic-launcher", "Running", "AGE", "true", "0", "NODE"]
    assert [row[4] for row in page[9:]] == ["1"] * 8
    launcher = next(pod for pod in world.pods("north") if pod["metadata"]["name"].endswith("-launcher"))
    assert launcher["spec"]["nodeName"] == "north-pool0-0"
    assert printed_by(launcher) == "--log-level DEBUG --verbose -np 8 --min-np 1 --max-np 128"
    secrets = [
        each["metadata"]["name"] for each in world.clients["north"].list("/api/v1/namespaces/default/secrets")["items"]
    ]
    assert "fine-tuning-elastic" in secrets
    again = convoy(*submit.words)
    assert again.code == 4 and "convoy delete fine-tuning-elastic --type etjob -n default" in again.err
    assert convoy("delete", "fine-tuning-elastic", "--type", "etjob", "-n", "default").code == 0
    world.until(lambda: not Job.objects.exists(), "the job is gone")
    assert not Dependent.objects.filter(kind="Secret").exists()


def test_1_3_3_and_10_the_mpi_jobs_of_the_document_are_submitted_shown_and_followed_as_it_is_written_there(
    world, convoy
):
    world.member("north", 8, 8, time_scale=SLOW)
    label(world, "north", "north-pool0-0", nvidia_com__gpu_product="Tesla-V100-SXM2-16GB")
    label(world, "north", "north-pool0-0", ack_node_gpu_schedule="topology")
    linked = Node.objects.filter(name="north-pool0-0", allocatable__has_key="aliyun.com/gpu")
    world.until(linked.exists, "the node offers its GPUs by their links")
    world.apply(POLICY)
    steps = transcripts.read("gpu_topology")
    assert len(steps) == 12
    for submit, get, _ in zip(steps[::3], steps[1::3], steps[2::3], strict=True):
        name = get.words[1]
        assert f"INFO The Job {name} has been submitted successfully".split() in shape(pasted(convoy, submit))
        world.expect(name, "Running")
        world.until(partial(running, world, name), "all its pods run")
        page = pasted(convoy, get)
        assert shape(page) == shape(get.printed)
        nodes = {line.split()[-1] for line in page.splitlines() if "-worker-" in line}
        assert nodes == {"north-pool0-0" if "topo" in name else "north-pool1-0"}
    arena = installed(convoy)
    listed = [line.split() for line in arena("list").splitlines()]
    assert listed[0] == ["NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE"]
    assert [row[1:3] + row[4:6] for row in listed[1:]] == [["RUNNING", "MPIJOB", "4", "4"]] * 4
    assert arena("top", "job").endswith("\n\nTotal Allocated/Requested GPUs of Training Jobs: 16/16\n")
    assert arena("top", "node").endswith(f"\n{'-' * 99}\nAllocated/Total GPUs In Cluster:\n16/16 (100.0%)\n")
    assert "LinkTypeMatrix:" in arena("top", "node", "north-pool0-0", "-d")
    for follow in steps[2::3]:
        name = follow.words[-1]
        with subprocess.Popen(arena.command(*follow.words), stdout=subprocess.PIPE, text=True, env=arena.env) as log:
            assert f"{name}-launcher-" in log.stdout.readline()
            assert f"training job {name} has been deleted" in arena("delete", name)
            assert all(f"{name}-launcher-" in line for line in log.stdout)
    assert arena("prune", "--since", "10h") == "No job need to be deleted\n"


def printed_by(launcher: dict) -> str:
    """The options of its program as the shell in the pod expands them: its command, with an echo in the program's place."""
    [container] = launcher["spec"]["containers"]
    shell, option, line = [*container["command"], *container.get("args", [])]
    assert "-np $((${workers}*${gpus}))" in line
    env = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    line = line.replace("horovodrun", "echo", 1)
    done = subprocess.run([shell, option, line], env=env, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.partition(" --host-discovery-script")[0].strip()


def running(world, name: str) -> bool:
    pods = [pod for pod in world.pods("north") if pod["metadata"]["name"].startswith(f"{name}-")]
    return len(pods) == 5 and {pod["status"].get("phase") for pod in pods} == {"Running"}


class Arena:
    """The program that `convoy alias arena` has installed."""

    def __init__(self, convoy: Convoy) -> None:
        self.env = convoy.env
        self.path = convoy.home / "bin" / "arena"

    def command(self, *words: str) -> list[str]:
        return [str(self.path), *words]

    def __call__(self, *words: str) -> str:
        done = subprocess.run(self.command(*words), capture_output=True, text=True, env=self.env, timeout=180)
        assert done.returncode == 0, done.stderr
        return done.stdout


def installed(convoy: Convoy) -> Arena:
    arena = Arena(convoy)
    assert convoy("alias", "arena", "--dir", "bin").out == "bin/arena installed\n"
    return arena
