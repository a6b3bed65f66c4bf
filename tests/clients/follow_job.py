"""Run by the interpreter of the SDKs: makes a job with the Training SDK, follows its pods, reads their logs, and deletes it.

Prints one JSON object with what the clients said. Arguments: a kubeconfig.
"""

import json
import sys

import kr8s
from kubeflow.training import (
    KubeflowOrgV1PyTorchJob,
    KubeflowOrgV1PyTorchJobSpec,
    KubeflowOrgV1ReplicaSpec,
    TrainingClient,
)
from kubernetes import client, config

NAME = "from-sdk"
file = sys.argv[1]
config.load_kube_config(file)
training = TrainingClient(config_file=file, namespace="default", job_kind="PyTorchJob")


def replicas(count):
    resources = client.V1ResourceRequirements(limits={"nvidia.com/gpu": "1"})
    container = client.V1Container(name="pytorch", image="example.com/train", resources=resources)
    metadata = client.V1ObjectMeta(annotations={"convoy.dev/duration": "1h"})
    template = client.V1PodTemplateSpec(metadata=metadata, spec=client.V1PodSpec(containers=[container]))
    return KubeflowOrgV1ReplicaSpec(replicas=count, template=template)


job = KubeflowOrgV1PyTorchJob(
    api_version="kubeflow.org/v1",
    kind="PyTorchJob",
    metadata=client.V1ObjectMeta(name=NAME, namespace="default"),
    spec=KubeflowOrgV1PyTorchJobSpec(
        run_policy={}, pytorch_replica_specs={"Master": replicas(1), "Worker": replicas(2)}
    ),
)
training.create_job(job)
training.wait_for_job_conditions(NAME, expected_conditions={"Running"}, wait_timeout=150, polling_interval=1)
logs, _ = training.get_job_logs(NAME)
said = {
    "names": sorted(training.get_job_pod_names(NAME)),
    "masters": training.get_job_pod_names(NAME, is_master=True),
    "phases": sorted({pod.status.phase for pod in training.get_job_pods(NAME)}),
    "logs": {pod: len(text) > 0 for pod, text in logs.items()},
}
api = kr8s.api(kubeconfig=file)
pods = list(api.get("pods", namespace="default", label_selector=f"training.kubeflow.org/job-name={NAME}"))
said["kr8s"] = sorted(pod.name for pod in pods)
said["kr8s log"] = bool(list(pods[0].logs(tail_lines=1)))
training.delete_job(NAME)
print(json.dumps(said))
