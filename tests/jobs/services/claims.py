"""A volume claim, and a job that mounts claims."""

import yaml

from tests.support.world import pytorch_job


def claim(name: str = "ckpt", **annotations: str) -> str:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "annotations": annotations}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def job(name: str, *mounts: str, gpus: int = 1) -> str:
    body = yaml.safe_load(pytorch_job(name, workers=0, gpus=gpus))
    for replica in body["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["volumes"] = [
            {"name": each, "persistentVolumeClaim": {"claimName": each}} for each in mounts
        ]
    return yaml.safe_dump(body)
