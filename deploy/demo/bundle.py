"""Writes ``train.yaml``: the training script as a ConfigMap, and the PyTorchJob whose pods mount and run it.

The script is kept once, as a file that can be read and run; the manifest is generated from it (``make generate``).
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SCRIPT = FOLDER / "training" / "train.py"
MANIFEST = FOLDER / "train.yaml"
NAME = "train"
MOUNT = "/convoy/train"


def render() -> str:
    """The whole manifest, as text."""
    script = "".join(f"    {line}".rstrip() + "\n" for line in SCRIPT.read_text().splitlines())
    return HEAD.format(name=NAME) + script + JOB.format(name=NAME, master=role(1), workers=role(2))


def role(replicas: int) -> str:
    return ROLE.format(replicas=replicas, name=NAME, mount=MOUNT)


HEAD = """\
# Made from training/train.py by `make generate`: change that, not this.
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: default
data:
  train.py: |
"""
JOB = """\
---
# Three real processes that train one model together: a simulated kubelet runs the command on this machine.
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: {name}
  namespace: default
spec:
  pytorchReplicaSpecs:
    Master:
{master}    Worker:
{workers}"""
ROLE = """\
      replicas: {replicas}
      restartPolicy: OnFailure
      template:
        metadata:
          annotations:
            convoy.dev/run: process
        spec:
          containers:
            - name: pytorch
              image: python:3.11
              command: [python3, {mount}/train.py]
              resources:
                limits:
                  nvidia.com/gpu: 1
                requests:
                  cpu: "1"
                  memory: 256Mi
                  nvidia.com/gpu: 1
              volumeMounts:
                - name: script
                  mountPath: {mount}
          volumes:
            - name: script
              configMap:
                name: {name}
"""


def main(argv: list[str]) -> int:
    """Writes it, or with ``--check`` says whether it is what would be written."""
    if "--check" not in argv:
        MANIFEST.write_text(render())
        return 0
    if MANIFEST.read_text() == render():
        return 0
    sys.stderr.write(f"{MANIFEST} is not what training/train.py makes: run make generate\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
