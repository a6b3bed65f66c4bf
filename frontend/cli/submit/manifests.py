"""One function for each kind of job: the manifest that a command line means. Pure.

The fields are those that arena writes, where the fleet's kinds have them.
"""

from typing import Any

from frontend.cli.problems import usage
from frontend.cli.submit import pods, values
from frontend.cli.submit.flags import Options
from frontend.cli.submit.pods import Manifest, Role

SSH_SECRET = "arena.kubeflow.org/ssh-secret"  # noqa: S105 - the name of an annotation
OWN_KEY = "convoy.dev/ssh-secret"
"""Annotation: the Secret that was made for this job alone, and is deleted with it."""
SPOT, MAX_WAIT = "job-supervisor.kube-ai.io/spot-instance", "job-supervisor.kube-ai.io/max-wait-time"
_PROCESSES = ("auto", "cpu", "gpu")


def etjob(options: Options, command: list[str]) -> Manifest:
    """An elastic job: a launcher, and workers from --min-workers to --max-workers."""
    workers, least, most = options["workers"], options["min_workers"], options["max_workers"]
    if not least <= workers <= most:
        raise usage(
            f"--workers: {workers} is not from --min-workers ({least}) to --max-workers ({most})",
            f"for example: --workers={max(least, min(workers, most))}",
        )
    gpus = options["gpus"]
    counts = {"workers": workers, "gpus": gpus, "minWorkers": least, "maxWorkers": most}
    env = {name: str(count) for name, count in counts.items()}
    notes = {SPOT: "true"} if options["spot_instance"] else {}
    notes |= {MAX_WAIT: str(options["max_wait_time"])} if options["max_wait_time"] else {}
    secret = options["ssh_secret"]
    amounts = _amounts(options)
    shared = {"container": "et", "image": options["image"], "requests": amounts, "env": env, "rdma": True}
    launcher = Role(
        **shared,
        limits=amounts,
        selector=values.pairs("--launcher-selector", options["launcher_selector"]),
        annotations={**notes, **values.pairs("--launcher-annotation", options["launcher_annotation"])},
    )
    worker = Role(
        **shared,
        limits=amounts | pods.devices(options, gpus),
        annotations={**notes, **values.pairs("--worker-annotation", options["worker_annotation"])},
        # The operator starts an SSH server in workers that name no command.
        runs=False,
    )
    templates = [pods.template(options, role, command) for role in (launcher, worker)]
    for template in templates:
        _refer_to(template, secret or options["name"], required=bool(secret))
    policy = {"restartPolicy": options["worker_restart_policy"]} if options["worker_restart_policy"] else {}
    spec: Manifest = {
        "cleanPodPolicy": "Running",
        **({"restartPolicy": options["job_restart_policy"]} if options["job_restart_policy"] else {}),
        "backoffLimit": options["job_backoff_limit"],
        "slotsPerWorker": max(gpus, 1),
        "etReplicaSpecs": {
            "launcher": {"replicas": 1, "template": templates[0]},
            "worker": {
                "replicas": workers, "minReplicas": least, "maxReplicas": most, **policy, "template": templates[1],
            },
        },
    }  # fmt: skip
    notes |= {SSH_SECRET: secret} if secret else {OWN_KEY: options["name"]}
    return _manifest("kai.alibabacloud.com/v1alpha1", "TrainingJob", options, spec, notes)


def _refer_to(template: Manifest, secret: str, *, required: bool) -> None:
    """Lets the Secret travel with the job. The operator itself mounts it, so it is named as a volume that nothing mounts."""
    source = {"secretName": secret} | ({} if required else {"optional": True})
    spec = template["spec"]
    spec["volumes"] = [*spec.get("volumes", []), {"name": "convoy-ssh-key", "secret": source}]


def mpijob(options: Options, command: list[str], version: str = "v2beta1") -> Manifest:
    """A launcher without GPUs, and the workers whose processes it starts."""
    gpus = options["gpus"]
    resource = pods.LINKED_GPU if options["gputopology"] else pods.GPU
    if options["gputopology"] and not gpus:
        raise usage("--gputopology chooses GPUs, and --gpus asks for none", "for example: --gpus=1")
    amounts = _amounts(options)
    launcher = Role("mpi", options["image"], mounts=options["mounts_on_launcher"])
    worker = Role(
        "mpi",
        options["image"],
        requests=amounts,
        limits=amounts | pods.devices(options, gpus, resource=resource),
        runs=False,
        rdma=True,
    )
    policy = {"cleanPodPolicy": options["clean_task_policy"]} | _limit(options)
    spec: Manifest = {
        "slotsPerWorker": max(gpus, 1),
        # A launcher that starts first fails until its workers can be reached.
        **({"launcherCreationPolicy": "WaitForWorkersReady"} if version == "v2beta1" else {}),
        "runPolicy": policy,
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": pods.template(options, launcher, command)},
            "Worker": {"replicas": options["workers"], "template": pods.template(options, worker, command)},
        },
    }
    return _manifest(f"kubeflow.org/{version}", "MPIJob", options, spec)


def pytorchjob(options: Options, command: list[str]) -> Manifest:
    """A master, which counts as a worker, and the other workers."""
    amounts = _amounts(options)
    limits = amounts | pods.devices(options, options["gpus"])
    role = Role("pytorch", options["image"], requests=amounts, limits=limits, rdma=True)
    counts = {"Master": 1, "Worker": options["workers"] - 1}
    replicas = {
        name: {"replicas": count, "template": pods.template(options, role, command)}
        for name, count in counts.items()
        if count
    }
    spec: Manifest = {"runPolicy": _run_policy(options), "pytorchReplicaSpecs": replicas}
    if processes := options["nproc_per_node"]:
        if processes not in _PROCESSES and not processes.isdecimal():
            hint = f"use {', '.join(_PROCESSES)} or a number"
            raise values.refused("--nproc-per-node", processes, "is no number of processes", hint)
        spec["nprocPerNode"] = processes
    return _manifest("kubeflow.org/v1", "PyTorchJob", options, spec)


def tfjob(options: Options, command: list[str]) -> Manifest:
    """Workers, and parameter servers, a chief and an evaluator where they are asked for."""
    replicas = {
        "PS": _tf_role(options, "ps", options["ps"], command, gpus=options["ps_gpus"]),
        "Chief": _tf_role(options, "chief", int(options["chief"]), command),
        "Worker": _tf_role(options, "worker", options["workers"], command, gpus=options["gpus"]),
        "Evaluator": _tf_role(options, "evaluator", int(options["evaluator"]), command),
    }
    spec: Manifest = {"runPolicy": _run_policy(options)}
    if options["success_policy"] == "AllWorkers":
        spec["successPolicy"] = "AllWorkers"
    spec["tfReplicaSpecs"] = {name: role for name, role in replicas.items() if role["replicas"]}
    return _manifest("kubeflow.org/v1", "TFJob", options, spec)


def _tf_role(options: Options, role: str, count: int, command: list[str], *, gpus: int = 0) -> Manifest:
    def flag(name: str) -> tuple[str, str]:
        return f"--{role}-{name}", options[f"{role}_{name.replace('-', '_')}"]

    requests = pods.amounts(flag("cpu"), flag("memory"))
    devices = pods.devices(options, gpus) if role == "worker" else ({pods.GPU: str(gpus)} if gpus else {})
    body = Role(
        "tensorflow",
        options["ps_image" if role == "ps" else "worker_image"] or options["image"],
        requests=requests,
        limits=requests | pods.amounts(flag("cpu-limit"), flag("memory-limit")) | devices,
        selector=values.pairs(f"--{role}-selector", options[f"{role}_selector"]),
        rdma=role == "worker",
    )
    return {"replicas": count, "template": pods.template(options, body, command)}


def _amounts(options: Options) -> dict[str, str]:
    return pods.amounts(("--cpu", options["cpu"]), ("--memory", options["memory"]))


def _limit(options: Options) -> Manifest:
    return {} if options["retry"] is None else {"backoffLimit": options["retry"]}


def _run_policy(options: Options) -> Manifest:
    running = values.seconds("--running-timeout", options["running_timeout"])
    kept = options["ttl_after_finished"]
    return {
        "cleanPodPolicy": options["clean_task_policy"],
        **_limit(options),
        **({"activeDeadlineSeconds": running} if running else {}),
        **({"ttlSecondsAfterFinished": values.seconds("--ttl-after-finished", kept)} if kept else {}),
    }


def _manifest(
    version: str, kind: str, options: Options, spec: Manifest, annotations: dict[str, Any] | None = None
) -> Manifest:
    head = {"apiVersion": version, "kind": kind, "metadata": pods.metadata(options, annotations or {})}
    return head | {"spec": spec}
