"""elastic.iml.github.io ElasticJob (DLRover): a master pod that makes the workers, parameter servers, chief and evaluators.

Its status is nested: ``status.phase`` beside ``status.status.conditions``, and the phase is what the master pod does: it is
Running while no worker exists yet. ``spec.suspend`` only keeps the master from making pods; those that run go on, so the
fleet ends them itself (`dispatch.members.stopping`). ``restartCounts``, as some write it, is no field and would be
dropped silently: it is sent as ``restartCount``. A master that is not described is written into the copy as the operator would
(DLRover 0.6.1, go/elasticjob master.go), with the image of the workers, which have the framework in them: so that overrides,
reservations and the fleet's marks reach it like every other pod.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from fleet.kube.resources import CONFIG_MAPS, ELASTIC_JOBS, PODS, SERVICES
from jobs.kinds.base import AccountRights, Faults, Kind, Manifest, Phase, Reading, Role, State
from jobs.kinds.kubeflow import exactly_one, read_replicas

_KEY = "replicaSpecs"
_MASTER = "dlrover-master"
_ROLES = (_MASTER, "chief", "ps", "worker", "evaluator")
_MASTER_ASKS = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2Gi"}
_MASTER_REQUEST = {"cpu": 1000, "memory": 2 * 2**30, "ephemeral-storage": 2 * 2**30, "pods": 1}
_MASTER_COMMAND = "python -m dlrover.python.master.main --platform pyk8s --namespace {} --job_name {} --port 50001"
_MASTER_ARGUMENTS = (
    "pending_timeout",
    "pending_fail_strategy",
    "service_type",
    "pre_check_ops",
    "pre_check_bypass",
    "training_elastic_mode",
    "enable_dashboard",
    "dashboard_port",
)
"""Annotations of a job that are arguments of its master, in the operator's order; a master that is older ignores the newer."""
_OWN_ARGUMENTS = {
    "hang_detection": (re.compile(r"[12]"), "1 or 2"),
    "hang_downtime": (re.compile(r"[2-9]|10"), "whole minutes, from 2 to 10"),
}
"""Arguments of the master that the operator has no annotations for, and the values it acts upon. Its help names a
`hang_detection` of 0, with which it does not start; minutes outside of this range it replaces without a word."""
_MOST_RESTARTS = 5
"""DLRover's own cap of a rank's restartCount; the master's has none."""
_MASTER_RIGHTS = (
    (ELASTIC_JOBS, ("get", "list", "watch")),
    (PODS, ("create", "get", "list", "watch", "patch", "delete")),
    (SERVICES, ("create", "get", "patch")),
    (CONFIG_MAPS, ("get",)),
)
_EVENTS = {"DLROVER_EVENT_EVENT_EXPORTER": "CONSOLE", "DLROVER_EVENT_TEXT_FORMATTER": "JSON"}
"""Environment that makes dlrover write one JSON object a line for each of its events (`jobs.runtime.dlrover`)."""
_STRATEGIES = ("AllreduceStrategy", "ParameterServerStrategy", "CustomStrategy", "Local")
_PREFIX = "elasticjob.dlrover/"
_PHASES = {"Pending": Phase.CREATED, **{phase.value: phase for phase in Phase}}


class ElasticJob(Kind):
    resource = ELASTIC_JOBS
    primary_roles = ("chief", "worker", _MASTER)
    phase_words = {
        "phase": {phase: (phase.value,) for phase in Phase}
        | {Phase.CREATED: ("Created", "Pending"), Phase.RESTARTING: ("Running",)}
    }
    ends_pods = False
    replaces_pods = True
    ended_last = _MASTER

    def derived_names(self, name: str, roles: Sequence[Role]) -> Sequence[str]:
        workers = [f"{name}-edljob-{role.name.lower()}-{role.replicas - 1}" for role in roles]
        return f"elasticjob-{name}-dlrover-master", *workers

    def read(self, manifest: Manifest) -> Reading:
        faults = Faults()
        spec = faults.mapping(manifest.get("spec"), "spec", required=True)
        roles = read_replicas(spec, _KEY, _ROLES, faults, container="")
        exactly_one(roles, _MASTER, f"spec.{_KEY}.{_MASTER}", faults)
        others = tuple(role for role in roles if role.name != _MASTER)
        _check_containers(spec, faults)
        if not others and not faults.found:
            faults.add(f"spec.{_KEY}", "must ask for at least one pod beside the master")
        warnings = (*_read_restarts(spec, faults), *_unknown_values(manifest))
        faults.one_of(spec.get("distributionStrategy") or None, "spec.distributionStrategy", _STRATEGIES)
        faults.one_of(spec.get("optimizeMode") or None, "spec.optimizeMode", ("single-job", "cluster", "manual"))
        suspended = faults.flag(spec.get("suspend"), "spec.suspend")
        master = tuple(role for role in roles if role.name == _MASTER) or (Role(_MASTER, 1, _MASTER_REQUEST),)
        min_available = sum(role.replicas for role in others)
        return Reading(master + others, suspended, tuple(faults.found), min_available, warnings)

    def set_defaults(self, manifest: Manifest) -> None:
        replicas = manifest["spec"][_KEY]
        for role, replica in replicas.items():
            if (count := replica.pop("restartCounts", None)) is not None:
                replica.setdefault("restartCount", count)
            for container in replica["template"]["spec"]["containers"]:
                _request_limits(container)
                if role.lower() != _MASTER:
                    _write_events(container)
        if not any(name.lower() == _MASTER for name in replicas):
            replicas[_MASTER] = {"replicas": 1, "template": _default_master(manifest)}

    def templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        for role, replica in manifest["spec"][_KEY].items():
            yield role.lower(), replica["template"]

    def gang_templates(self, manifest: Manifest) -> Iterator[tuple[str, Manifest]]:
        return ((role, template) for role, template in self.templates(manifest) if role != _MASTER)

    def goes_on_without(self, manifest: Manifest, role: str, left: int, lost: Collection[int]) -> bool:
        """The master replaces the others while it runs; a role that has no pod left trains nothing until then."""
        return role != _MASTER and left > 0

    def read_status(self, status: Manifest, running_pods: int) -> State:
        inner = status.get("status") or {}
        phase = _PHASES.get(str(status.get("phase") or ""), Phase.CREATED)
        true = [each for each in inner.get("conditions") or [] if each.get("status") == "True"]
        words: Manifest = next((each for each in true if each.get("type") == phase.value), {})
        message = str(words.get("message") or words.get("reason") or "")
        if phase is Phase.RUNNING and words.get("reason") == "JobRestarting":
            phase = Phase.RESTARTING
        elif phase is Phase.RUNNING and not _workers_run(inner.get("replicaStatuses") or {}, running_pods):
            phase, message = Phase.CREATED, "the master runs, and no worker yet"
        return State(phase, message, str(inner.get("startTime") or ""), str(inner.get("completionTime") or ""))

    def suspend(self, manifest: Manifest, on: bool) -> None:
        manifest.setdefault("spec", {})["suspend"] = on

    def account_rights(self, manifest: Manifest) -> AccountRights:
        """The master makes and watches the other pods as its own ServiceAccount."""
        specs = ((manifest.get("spec") or {}).get(_KEY) or {}).items()
        master: Manifest = next((spec["template"] for name, spec in specs if name.lower() == _MASTER), {})
        account = (master.get("spec") or {}).get("serviceAccountName") or "default"
        rights = tuple((verb, resource) for resource, verbs in _MASTER_RIGHTS for verb in verbs)
        return AccountRights(account, "the DLRover master", rights)

    def pod_role(self, labels: dict[str, str]) -> tuple[str, int]:
        """A replaced pod has a new id and keeps its rank."""
        rank = labels.get(f"{_PREFIX}rank-index") or labels.get(f"{_PREFIX}replica-index") or "0"
        return labels.get(f"{_PREFIX}replica-type", ""), int(rank) if rank.isdigit() else 0


def _unknown_values(manifest: Manifest) -> Iterator[str]:
    metadata = Faults().mapping(manifest.get("metadata"), "metadata")
    notes = Faults().mapping(metadata.get("annotations"), "metadata.annotations")
    for name, (values, wanted) in _OWN_ARGUMENTS.items():
        if name in notes and not values.fullmatch(str(notes[name])):
            yield f"metadata.annotations.{name}: must be {wanted}; the master does not get {str(notes[name])[:40]!r}"


def _read_restarts(spec: Manifest, faults: Faults) -> tuple[str, ...]:
    """Checks the budgets of restarts; returns warnings about those that are misspelt, capped, or without a command."""
    warnings = []
    for name, replica in faults.mapping(spec.get(_KEY), f"spec.{_KEY}").items():
        path, fields = f"spec.{_KEY}.{name}", replica if isinstance(replica, dict) else {}
        if "restartCounts" in fields:
            warnings.append(f"{path}.restartCounts is taken for restartCount, the name of the field")
        counts = [
            faults.whole(fields.get(key), f"{path}.{key}", default=0) for key in ("restartCount", "restartCounts")
        ]
        if max(counts) > _MOST_RESTARTS and str(name).lower() != _MASTER:
            warnings.append(f"{path}.restartCount: DLRover replaces a rank {_MOST_RESTARTS} times at most")
        if faults.found:
            continue
        if str(name).lower() != _MASTER:
            warnings += _overwritten(fields["template"], path)
        elif not _starts_something(fields["template"]):
            words = "names no command: the entrypoint of its image has to start the DLRover master"
            warnings.append(f"{path}.template.spec.containers[0] {words}")
    return tuple(warnings)


def _check_containers(spec: Manifest, faults: Faults) -> None:
    """Of several containers DLRover trains in the one called main."""
    for name, replica in () if faults.found else spec[_KEY].items():
        containers = replica["template"]["spec"]["containers"]
        if len(containers) > 1 and name.lower() != _MASTER and all(each.get("name") != "main" for each in containers):
            path = f"spec.{_KEY}.{name}.template.spec.containers"
            faults.add(path, "one of several must be named main: DLRover makes no pod without it")


def _request_limits(container: Manifest) -> None:
    """Requests what is limited, as an API server does for pods: DLRover reads requests alone and limits what they say."""
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _write_events(container: Manifest) -> None:
    """Lets dlrover's agents write their events into the log, where the fleet reads them; what a person sets is theirs."""
    env = container.get("env") or []
    names = {each.get("name") for each in env}
    container["env"] = [*env, *({"name": name, "value": value} for name, value in _EVENTS.items() if name not in names)]


def _overwritten(template: Manifest, path: str) -> list[str]:
    """Warnings about fields of a worker's template that the master writes over with nothing."""
    spec = template["spec"]
    fields = [name for name in ("priorityClassName", "terminationGracePeriodSeconds") if spec.get(name) is not None]
    fields += ["containers[].lifecycle" for container in spec["containers"] if container.get("lifecycle")][:1]
    return [f"{path}.template.spec.{name}: the DLRover master makes the pods without it" for name in fields]


def _starts_something(template: Manifest) -> bool:
    container = template["spec"]["containers"][0]
    return bool(container.get("command") or container.get("args"))


def _default_master(manifest: Manifest) -> Manifest:
    """The pod template that the operator gives a job without one. POD_IP is not in it: the operator adds that to any master."""
    metadata, replicas = manifest["metadata"], manifest["spec"][_KEY]
    worker = next((spec for name, spec in replicas.items() if name.lower() == "worker"), next(iter(replicas.values())))
    image = worker["template"]["spec"]["containers"][0]
    notes = metadata.get("annotations") or {}
    command = _MASTER_COMMAND.format(metadata.get("namespace") or "default", metadata["name"])
    arguments = [f" --{name} {notes[name]}" for name in _MASTER_ARGUMENTS if name in notes]
    own = (name for name, (values, _) in _OWN_ARGUMENTS.items() if values.fullmatch(str(notes.get(name, ""))))
    arguments += [f" --{name} {notes[name]}" for name in own]
    container = {
        "name": "main",
        "image": image["image"],
        "imagePullPolicy": image.get("imagePullPolicy") or "Always",
        "command": ["/bin/bash", "-c", command + "".join(arguments)],
        "resources": {"requests": dict(_MASTER_ASKS), "limits": dict(_MASTER_ASKS)},
    }
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def _workers_run(replicas: Manifest, running_pods: int) -> bool:
    """Whether a pod beside the master runs: by the operator's counts, or by the pods that the fleet sees."""
    counted = any(int(count.get("active") or 0) > 0 for name, count in replicas.items() if name != _MASTER)
    return counted or running_pods > 1
