"""1.4: DLRover's ElasticJobs, as far as they are a kind of job."""

import time
from pathlib import Path

import pytest
import yaml

from jobs.kinds import registry
from jobs.models import Attempt, Job
from simulator.fault_parser import Fault
from tests.acceptance.builders import POLICY
from tests.support.processor import Waiting

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "elasticjob.yaml"
KIND = registry.kind_of("elastic.iml.github.io/v1alpha1", "ElasticJob")


def elastic_job(**spec: object) -> dict:
    made = yaml.safe_load(EXAMPLE.read_text())
    made["spec"] |= spec
    made["spec"]["replicaSpecs"]["worker"]["template"]["metadata"]["annotations"] = {"convoy.dev/duration": "10h"}
    return made


def test_1_4_1_elastic_jobs_of_every_strategy_and_mode_are_accepted_with_a_master(ada):
    forms = [
        elastic_job(distributionStrategy=strategy, optimizeMode=mode)
        for strategy in ("AllreduceStrategy", "ParameterServerStrategy")
        for mode in ("single-job", "cluster", "manual")
    ]
    for number, form in enumerate(forms):
        form["metadata"]["name"] = f"llama-{number}"
    said = ada.says("apply", "-f", "-", given=yaml.safe_dump_all(forms))
    assert said.count("created") == len(forms) and "Warning" not in said
    for job in Job.objects.all():
        master = job.roles[0]
        assert master["name"] == "dlrover-master" and master["request"]["memory"] == 2 * 2**30


@pytest.mark.parametrize("strategy", ["AllreduceStrategy", "ParameterServerStrategy"])
@pytest.mark.parametrize("mode", ["single-job", "cluster", "manual"])
def test_1_4_1_an_elastic_job_is_accepted_and_a_missing_master_gets_1_cpu_2_gi_and_restart_never(strategy, mode):
    manifest = elastic_job(distributionStrategy=strategy, optimizeMode=mode)
    reading = KIND.read(manifest)
    assert reading.faults == ()
    assert reading.roles[0].name == "dlrover-master"
    request = reading.roles[0].request
    assert (request["cpu"], request["memory"]) == (1000, 2 * 2**30)
    KIND.set_defaults(manifest)
    spec = manifest["spec"]["replicaSpecs"]["dlrover-master"]["template"]["spec"]
    assert spec["restartPolicy"] == "Never"
    command = "python -m dlrover.python.master.main --platform pyk8s --namespace default --job_name llama --port 50001"
    assert spec["containers"][0]["command"] == ["/bin/bash", "-c", command]


def test_1_4_2_pods_are_named_after_the_job_and_a_replaced_rank_keeps_its_label_with_a_new_id(world):
    member = world.member("north", 8)
    world.apply(POLICY, yaml.safe_dump(elastic_job()))
    world.expect("llama", "Running")
    names = {pod["metadata"]["name"] for pod in world.pods("north")}
    assert names == {"elasticjob-llama-dlrover-master-0", "llama-edljob-worker-0", "llama-edljob-worker-1"}
    ranks = {"llama-edljob-worker-1": "1", "llama-edljob-worker-2": "1"}
    member.disturb(Fault("crash-pod", 1.0, "default/llama-edljob-worker-1"))

    def labels() -> dict[str, str]:
        found = {pod["metadata"]["name"]: pod["metadata"]["labels"] for pod in world.pods("north")}
        return {name: found[name]["elasticjob.dlrover/rank-index"] for name in ranks if name in found}

    world.until(lambda: labels() == ranks, "the rank has a new pod")
    assert Attempt.objects.get().facts_due_at is not None, "what its runtime says is read while it runs"


def test_1_4_17_a_gang_of_koordinator_that_a_person_wrote_waits_for_all_its_pods(world):
    world.member("north", 8)
    manifest = elastic_job()
    gang = "gang.scheduling.koordinator.sh"
    notes = {f"{gang}/name": "torch-mnist-gang", f"{gang}/min-available": "4", "convoy.dev/duration": "10h"}
    manifest["spec"]["replicaSpecs"]["worker"]["template"]["metadata"]["annotations"] = notes
    world.apply(POLICY, yaml.safe_dump(manifest))
    world.until(lambda: len(world.pods("north")) == 3, "the pods are made")
    phases = {p["metadata"]["name"]: p["status"]["phase"] for p in world.pods("north")}
    assert {phases["llama-edljob-worker-0"], phases["llama-edljob-worker-1"]} == {"Pending"}
    world.delete("llama")
    world.until(lambda: world.pods("north") == [], "it is gone")
    notes[f"{gang}/min-available"] = "2"
    manifest["metadata"]["name"] = "smaller"
    world.apply(yaml.safe_dump(manifest))
    world.expect("smaller", "Running")


def test_1_4_18_a_suspended_elastic_job_has_no_worker_pods_until_it_is_resumed(world, ada):
    world.member("north", 8)
    ada.says("apply", "-f", "-", given=f"{POLICY}\n---\n{yaml.safe_dump(elastic_job(suspend=True))}")
    assert world.job("llama").state == "Suspended" and world.pods("north") == []
    assert ada.says("get", "pods", "-o", "name") == ""
    ada.says("patch", "elasticjob", "llama", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    world.expect("llama", "Running")


def test_1_4_18_suspending_a_running_elastic_job_leaves_no_worker_pods_within_its_grace_and_five_seconds(world):
    """Simulated: its operator ends no pod on suspend, as the real one does not."""
    world.member("north", 8, time_scale=1.0)
    world.apply(POLICY, yaml.safe_dump(elastic_job()))
    world.expect("llama", "Running")
    waiting, began = Waiting(), time.monotonic()
    world.suspend("llama")
    world.until(lambda: world.pods("north") == [], "no pods")
    assert time.monotonic() - began < 30.0 + 5.0 * waiting.slowdown()
    assert world.job("llama").state == "Suspended"
    world.resume("llama")
    world.expect("llama", "Running")
