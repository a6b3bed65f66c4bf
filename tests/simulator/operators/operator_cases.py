"""Jobs and pods for the tests of the operators' rules."""

from typing import Any

from simulator.operators.kubeflow import plan
from simulator.operators.kubeflow.kinds import PyTorch, TensorFlow
from simulator.operators.kubeflow.pods import KubeflowKind, pod_of

PYTORCH, TENSORFLOW = PyTorch(), TensorFlow()

NOW = 1_700_000_000.0


def pytorch_job(*, workers: int = 2, master: bool = True, restart: str = "OnFailure", **run_policy: Any) -> dict:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}
    roles: dict[str, Any] = {"Master": {"restartPolicy": restart, "template": template}} if master else {}
    if workers:
        roles["Worker"] = {"replicas": workers, "restartPolicy": restart, "template": template}
    meta = {"name": "llama", "namespace": "ai", "uid": "u1"}
    return {"metadata": meta, "spec": {"runPolicy": run_policy, "pytorchReplicaSpecs": roles}}


def pods_of(job: dict, kubeflow_kind: KubeflowKind = PYTORCH, **phases: str) -> list[dict]:
    """``pods_of(job, master_0="Running", worker_1="Failed:130")``: the job's pods in these phases."""
    made = []
    for place, phase in phases.items():
        role, _, index = place.partition("_")
        pod = pod_of(kubeflow_kind, job, kubeflow_kind.role_of(role), int(index))
        name, _, code = phase.partition(":")
        state = {"terminated": {"exitCode": int(code)}} if code else {}
        pod["status"] = {"phase": name, "containerStatuses": [{"restartCount": 0, "state": state}]}
        made.append(pod)
    return made


def times(now: float = NOW, **known: Any) -> plan.Times:
    return plan.Times(
        now=now,
        real=lambda simulated_s: simulated_s,
        **{"started": NOW, "completed": None, **known},
    )


def settled(job: dict, *pods: dict, kubeflow_kind: KubeflowKind = PYTORCH, **known: Any) -> dict:
    """The job with the status that its pods give it."""
    decision = plan.decide(kubeflow_kind, job, list(pods), times(**known))
    return {**job, "status": decision.status}


def truths(job: dict) -> list[str]:
    return [c["type"] for c in job["status"].get("conditions", []) if c["status"] == "True"]


def places(pods: list[dict]) -> list[tuple[str, int]]:
    return [PYTORCH.place_of(pod) for pod in pods]
