"""The job that the stock DLRover trains: the guide's manifest with an image, a command and a script of ours."""

from pathlib import Path

TRAINING = Path(__file__).with_name("train.py").read_text()
JOB = """
apiVersion: elastic.iml.github.io/v1alpha1
kind: ElasticJob
metadata: {name: llama, namespace: dlrover, annotations: {convoy.dev/checkpoint-grace: 10s}}
spec:
  distributionStrategy: AllreduceStrategy
  optimizeMode: single-job
  replicaSpecs:
    worker:
      replicas: 2
      restartCount: 3
      template:
        spec:
          restartPolicy: Never
          volumes: [{name: code, configMap: {name: code}}, {name: disk, %(disk)s}]
          containers:
            - name: main
              image: training:torch
              imagePullPolicy: Always
              command:
                - /bin/bash
                - -c
                - >-
                  dlrover-run --nnodes=%(nodes)s --nproc_per_node=1 --max_restarts=1 --save_at_breakpoint %(flags)s
                  /code/train.py
              env:
                - {name: STEPS, value: "%(steps)d"}
                - {name: STEP_S, value: "0.2"}
                - {name: CHECKPOINTS, value: /disk}
                - {name: LOST_AT, value: "%(lost_at)s"}
                - {name: HELD, value: "%(held)s"}
                - {name: TO_DISK, value: "%(to_disk)s"}
              volumeMounts: [{name: code, mountPath: /code}, {name: disk, mountPath: /disk}]
              resources: {limits: {cpu: "4", memory: 8Gi}, requests: {cpu: "4", memory: 8Gi}}
"""


def manifest(
    disk: str,
    steps: int,
    *,
    nodes: str = "$NODE_NUM",
    flags: str = "",
    lost_at: str = "",
    held: str = "",
    to_disk: str = "",
) -> str:
    """``lost_at``, ``held`` and ``to_disk``: see `train`."""
    script = {"steps": steps, "lost_at": lost_at, "held": held, "to_disk": to_disk}
    return JOB % {"disk": disk, "nodes": nodes, "flags": flags, **script}
