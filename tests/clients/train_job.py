"""Run by the interpreter of the SDKs: trains by the Kubeflow SDK's TrainerClient, and follows the TrainJob with lightkube.

Prints one JSON object with what the clients said. Arguments: a kubeconfig.
"""

import json
import sys

import lightkube
from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainerContainer, TrainerClient
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.core_v1 import Pod

file = sys.argv[1]
trainer = TrainerClient(KubernetesBackendConfig(namespace="default", config_file=file))
resources = {"cpu": 2, "memory": "4Gi", "nvidia.com/gpu": 1}
container = CustomTrainerContainer(image="example.com/bert", num_nodes=2, resources_per_node=resources)
name = trainer.train(runtime="torch-distributed", trainer=container)
job = trainer.wait_for_job_status(name, {"Running"}, timeout=150, polling_interval=1)
said = {
    "runtimes": [runtime.name for runtime in trainer.list_runtimes()],
    "steps": sorted((step.name, step.status, step.pod_name) for step in job.steps),
    "jobs": [each.name == name for each in trainer.list_jobs()],
    "log": bool(list(trainer.get_job_logs(name))),
    "reasons": sorted({event.reason for event in trainer.get_job_events(name)}),
}
client = lightkube.Client(config=lightkube.KubeConfig.from_file(file), namespace="default")
train_jobs = create_namespaced_resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs")
labels = {"jobset.sigs.k8s.io/jobset-name": name}
said["lightkube"] = {
    "nodes": client.get(train_jobs, name).spec["trainer"]["numNodes"],
    "pods": sorted(pod.metadata.name for pod in client.list(Pod, labels=labels)),
    "log": bool(list(client.log(job.steps[0].pod_name, tail_lines=1))),
}
trainer.delete_job(name)
print(json.dumps(said))
