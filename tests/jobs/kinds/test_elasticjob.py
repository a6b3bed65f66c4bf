"""ElasticJobs as DLRover 0.6.1 has them: the default master of its operator, its caps, and what its phases mean."""

import pytest

from fleet.kube.resources import ELASTIC_JOBS, PODS
from jobs.kinds.base import Phase, marked
from tests.jobs.kinds.builders import changed, example

WORKER = "spec/replicaSpecs/worker"
MASTER = {
    "replicas": 1,
    "template": {
        "metadata": {"labels": {"mark": "1"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": "example.com/dlrover-llama",
                    "imagePullPolicy": "Always",
                    "command": [
                        "/bin/bash",
                        "-c",
                        "python -m dlrover.python.master.main --platform pyk8s --namespace default --job_name llama"
                        " --port 50001",
                    ],
                    "resources": {
                        "requests": {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2Gi"},
                        "limits": {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2Gi"},
                    },
                }
            ],
        },
    },
}
"""What `createDefaultMasterTemplate` of the operator makes of the example, but for the image: the workers' own."""


def test_a_job_without_a_master_gets_the_operators_own():
    kind, manifest = example("elasticjob")
    assert marked(kind, manifest, {"mark": "1"})["spec"]["replicaSpecs"]["dlrover-master"] == MASTER


def test_the_fleet_counts_all_that_the_default_master_asks():
    kind, manifest = example("elasticjob")
    sent = marked(kind, manifest, {})
    assert kind.read(manifest).total() == kind.read(sent).total()


def test_annotations_become_the_masters_arguments_in_the_operators_order():
    kind, manifest = example("elasticjob")
    notes = {"service_type": "http", "pending_timeout": "900", "hang_detection": "2", "training_elastic_mode": "ucp"}
    sent = marked(kind, changed(manifest, "metadata/annotations", notes), {})
    [_, _, command] = sent["spec"]["replicaSpecs"]["dlrover-master"]["template"]["spec"]["containers"][0]["command"]
    operators = " --port 50001 --pending_timeout 900 --service_type http --training_elastic_mode ucp"
    assert command.endswith(f"{operators} --hang_detection 2")


def with_notes(**notes: str) -> tuple[str, tuple[str, ...]]:
    """The command of the master of a job with these annotations, and what the job is warned of."""
    kind, manifest = example("elasticjob")
    stated = changed(manifest, "metadata/annotations", notes)
    template = marked(kind, stated, {})["spec"]["replicaSpecs"]["dlrover-master"]["template"]
    return template["spec"]["containers"][0]["command"][2], kind.read(stated).warnings


@pytest.mark.parametrize("value", ["0", "3", "", "2; rm -rf /", "-1", "two", "\u0661"])
def test_the_master_gets_no_way_to_treat_hangs_that_it_would_not_start_with(value):
    """Its parser takes whole numbers above 0 alone, and ends at once with any other: the job would have no pod."""
    command, [warning] = with_notes(hang_detection=value, hang_downtime="10")
    assert command.endswith(" --port 50001 --hang_downtime 10")
    assert "hang_detection: must be 1 or 2" in warning


@pytest.mark.parametrize("value", ["0", "1", "11", "30", "05", "2.5", "5m"])
def test_the_master_gets_no_time_of_hangs_that_it_would_replace_silently(value):
    command, [warning] = with_notes(hang_detection="1", hang_downtime=value)
    assert command.endswith(" --port 50001 --hang_detection 1")
    assert "hang_downtime: must be whole minutes, from 2 to 10" in warning


@pytest.mark.parametrize(("way", "minutes"), [("1", "2"), ("2", "10")])
def test_the_master_gets_what_it_acts_upon_without_a_warning(way, minutes):
    command, warnings = with_notes(hang_detection=way, hang_downtime=minutes)
    assert command.endswith(f" --hang_detection {way} --hang_downtime {minutes}") and warnings == ()


def test_a_master_that_is_described_is_sent_as_it_is_and_one_without_a_command_is_warned_of():
    kind, manifest = example("elasticjob")
    described = {"template": {"spec": {"containers": [{"name": "main", "image": "mine"}]}}}
    given = changed(manifest, "spec/replicaSpecs/dlrover-master", described)
    assert marked(kind, given, {})["spec"]["replicaSpecs"]["dlrover-master"]["template"]["spec"] == {
        "containers": [{"name": "main", "image": "mine"}]
    }
    assert "names no command" in kind.read(given).warnings[0]
    started = changed(given, "spec/replicaSpecs/dlrover-master/template/spec/containers/0/command", ["run"])
    assert kind.read(started).warnings == ()


@pytest.mark.parametrize(("field", "count", "warned"), [("restartCount", 5, False), ("restartCount", 8, True)])
def test_a_budget_above_dlrovers_own_cap_is_warned_of(field, count, warned):
    kind, manifest = example("elasticjob")
    warnings = kind.read(changed(manifest, f"{WORKER}/{field}", count)).warnings
    assert [text for text in warnings if "5 times at most" in text] == (warnings and list(warnings) if warned else [])
    assert bool(warnings) is warned


def test_a_master_may_be_made_again_more_often_than_a_rank():
    kind, manifest = example("elasticjob")
    master = {"restartCount": 9, "template": MASTER["template"]}
    assert kind.read(changed(manifest, "spec/replicaSpecs/dlrover-master", master)).warnings == ()


def status(phase: str, reason: str = "", **active: int) -> dict:
    counts = {role.replace("_", "-"): {"active": count} for role, count in active.items()}
    conditions = [{"type": phase, "status": "True", "reason": reason, "message": "words"}]
    return {"phase": phase, "status": {"conditions": conditions, "replicaStatuses": counts}}


@pytest.mark.parametrize(
    ("given", "running_pods", "expected"),
    [
        (status("Running", "JobRunning", dlrover_master=1), 1, Phase.CREATED),
        (status("Running", "JobRunning", dlrover_master=1, worker=1), 1, Phase.RUNNING),
        (status("Running", "JobRunning", dlrover_master=1), 3, Phase.RUNNING),
        (status("Running", "JobRestarting", worker=2), 2, Phase.RESTARTING),
        (status("Pending", "", dlrover_master=0), 0, Phase.CREATED),
        (status("Succeeded", "JobSucceeded"), 0, Phase.SUCCEEDED),
        (status("Failed", "JobFailed"), 2, Phase.FAILED),
    ],
)
def test_a_job_runs_when_a_worker_does_and_not_when_only_its_master_does(given, running_pods, expected):
    assert example("elasticjob")[0].read_status(given, running_pods).phase is expected


def test_the_master_works_through_the_api_as_the_account_of_its_template():
    kind, manifest = example("elasticjob")
    assert kind.account_rights(manifest).account == "default"
    named = {"template": {"spec": {"serviceAccountName": "dlrover-sa", "containers": []}}}
    asked = kind.account_rights(changed(manifest, "spec/replicaSpecs/dlrover-master", named))
    assert asked.account == "dlrover-sa"
    assert {("create", PODS), ("delete", PODS), ("watch", ELASTIC_JOBS)} <= set(asked.rights)


def test_limits_are_requested_because_the_master_reads_requests_alone():
    kind, manifest = example("elasticjob")
    sent = marked(kind, changed(manifest, f"{WORKER}/template/spec/containers/0/resources/requests", {"cpu": "2"}), {})
    [container] = sent["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "16Gi", "nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("terminationGracePeriodSeconds", 300, "terminationGracePeriodSeconds"),
        ("priorityClassName", "high", "priorityClassName"),
        ("containers/0/lifecycle", {"preStop": {"exec": {"command": ["save"]}}}, "lifecycle"),
    ],
)
def test_what_the_master_writes_over_in_its_workers_is_warned_of(field, value, named):
    kind, manifest = example("elasticjob")
    assert kind.read(manifest).warnings == ()
    [warning] = kind.read(changed(manifest, f"{WORKER}/template/spec/{field}", value)).warnings
    assert named in warning


def test_one_of_several_containers_must_be_main():
    kind, manifest = example("elasticjob")
    [main] = manifest["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["containers"]
    others = [{"name": "train", "image": "a"}, {"name": "logs", "image": "b"}]
    [fault] = kind.read(changed(manifest, f"{WORKER}/template/spec/containers", others)).faults
    assert "named main" in fault.detail
    assert kind.read(changed(manifest, f"{WORKER}/template/spec/containers", [others[0], main])).faults == ()


def test_the_agents_of_the_workers_write_their_events_into_the_log_unless_the_person_says_otherwise():
    kind, manifest = example("elasticjob")
    given = changed(manifest, "spec/replicaSpecs/worker/template/spec/containers/0/env", [
        {"name": "DLROVER_EVENT_EVENT_EXPORTER", "value": "TEXTFILE"}, {"name": "A", "value": "1"}
    ])  # fmt: skip
    [container] = marked(kind, given, {})["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["containers"]
    assert {each["name"]: each["value"] for each in container["env"]} == {
        "A": "1", "DLROVER_EVENT_EVENT_EXPORTER": "TEXTFILE", "DLROVER_EVENT_TEXT_FORMATTER": "JSON",
    }  # fmt: skip
