"""The kinds that can be listed: the words for each, its path in the API, and its columns. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from frontend.cli import human

Item = dict[str, Any]
Cell = Callable[[Item, datetime], object]
NAMESPACE = "NAMESPACE"
FIT, FITS_WITHOUT = "convoy.dev/fit", ("Aggregate", "NodeFit")
"""The label of a cluster that selects how gangs are fitted there, and its values that hold no reservations."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``words`` may be typed for the kind; ``-o name`` prints the first. ``api_kind`` filters jobs and policies."""

    words: tuple[str, ...]
    path: str
    columns: Mapping[str, Cell]
    wide: Mapping[str, Cell]
    namespaced: bool = True
    api_kind: str = ""
    api_group: str = ""
    """Set only if kinds of several groups share a name."""

    @property
    def word(self) -> str:
        return self.words[0]

    def row(self, item: Item, now: datetime, *, wide: bool, namespace: bool) -> list[str]:
        return [_shown(cell(item, now)) for cell in self.cells(wide=wide, namespace=namespace).values()]

    def cells(self, *, wide: bool, namespace: bool) -> dict[str, Cell]:
        first: dict[str, Cell] = {NAMESPACE: value("namespace")} if namespace and self.namespaced else {}
        return {**first, **self.columns, **(self.wide if wide else {})}


def value(*path: str) -> Cell:
    def read(item: Item, now: datetime) -> object:
        content: Any = item
        for key in path:
            content = (content or {}).get(key)
        return content

    return read


def age(field: str) -> Cell:
    return lambda item, now: human.age(item.get(field), now)


def _shown(content: object) -> str:
    return human.NONE if content in (None, "", [], {}) else str(content)


def _pods(item: Item, now: datetime) -> str:
    """``5/6``: those that run, of all; a server of a former version does not say how many run."""
    pods, running = sum(role.get("replicas", 0) for role in item.get("roles") or []), item.get("pods_running")
    return str(pods) if running is None else f"{running}/{pods}"


def _job_age(item: Item, now: datetime) -> str:
    return human.between(item.get("started_at"), item.get("finished_at"), now)


def _job_state(item: Item, now: datetime) -> str:
    return "Deleting" if item.get("deleting_at") else str(item.get("state", ""))


def _upstream_state(item: Item, now: datetime) -> str:
    """In the words of the kind's own controller, which knows no queue: a job that waits is Created."""
    return _UPSTREAM_STATES.get(str(item.get("state", "")), "Created")


def policy_name(item: Item) -> str:
    return str((item.get("policy") or {}).get("name", ""))


def _policy(item: Item, now: datetime) -> str:
    return policy_name(item)


def _reason(item: Item, now: datetime) -> str:
    return str((item.get("reason") or {}).get("code", ""))


def _progress(item: Item, now: datetime) -> str:
    """``64/3000 (2%)``; without steps the percentage alone."""
    progress = item.get("progress") or {}
    steps = "/".join(str(progress[part]) for part in ("step", "total") if progress.get(part) is not None)
    percent = "" if progress.get("percent") is None else f"{progress['percent']}%"
    return f"{steps} ({percent})" if steps and percent else steps or percent


def _eta(item: Item, now: datetime) -> str:
    """What is left of the estimate; nothing where it does not run."""
    progress = item.get("progress") or {}
    reported = human.moment(progress.get("reported_at"))
    if item.get("state") != "Running" or progress.get("eta_s") is None or reported is None:
        return ""
    return human.duration(progress["eta_s"] - (now - reported).total_seconds())


def _loss(item: Item, now: datetime) -> str:
    loss = (item.get("progress") or {}).get("loss")
    return "" if loss is None else f"{loss:.4g}"


def _ready(item: Item, now: datetime) -> str:
    nodes = item.get("nodes") or {}
    return f"{_now(item, nodes.get('ready', 0))}/{nodes.get('total', 0)}"


def _gpus_free(item: Item, now: datetime) -> str:
    amounts = item.get("gpus") or {}
    return f"{_now(item, amounts.get('free', 0))}/{amounts.get('allocatable', 0)}"


def _pod_status(item: Item, now: datetime) -> str:
    since, word = item.get("stale_since"), item.get("reason")
    if not word or word == "Unschedulable":  # which is Pending for kubectl
        word = item.get("phase") or human.NONE
    return f"{word}" + (f" ({human.age(since, now)} ago)" if since else "")


def _now(item: Item, amount: object) -> object:
    """What a cluster has now: not known while it is silent, and nothing that a job could use."""
    return "?" if item.get("state") == "Unknown" else amount


def free_of(item: Item, resource: str) -> str:
    amounts = (item.get("capacity") or {}).get(resource)
    if not amounts:
        return "0/0"
    return f"{human.amount(resource, amounts['free'])}/{human.amount(resource, amounts['allocatable'])}"


def _cluster_state(item: Item, now: datetime) -> str:
    suffixes = [word for word, field in (("Cordoned", "cordoned"), ("Drained", "drained")) if item.get(field)]
    return ",".join([str(item["state"]), *suffixes])


def _reservation(item: Item, now: datetime) -> str:
    """Disabled where the cluster cannot hold reservations, or its label says that it is not to."""
    is_off = (item.get("labels") or {}).get(FIT) in FITS_WITHOUT
    return "Disabled" if is_off or item.get("reservations") else "Enabled"


def _node_state(item: Item, now: datetime) -> str:
    state = ("Ready" if item.get("ready") else "NotReady") + (",Cordoned" if item.get("unschedulable") else "")
    return f"{state},Excluded" if item.get("excluded") else state


def _exclusion(item: Item, now: datetime) -> str:
    """``until 2026-11-26 14:10: failed 3 times within 24 h``; of a node that single jobs avoid, the job that it failed last."""
    if excluded := item.get("excluded"):
        return _until(excluded)
    jobs = item.get("excluded_for") or []
    more = f" (and for {len(jobs) - 1} more)" if len(jobs) > 1 else ""
    return f"for {jobs[0]['job']} {_until(jobs[0])}{more}" if jobs else ""


def _until(excluded: Item) -> str:
    return f"until {excluded['until'][:16].replace('T', ' ')}: {excluded['message']}"


def _node_amount(resource: str) -> Cell:
    def used_of_total(item: Item, now: datetime) -> str:
        total = (item.get("allocatable") or {}).get(resource, 0)
        used = (item.get("requested") or {}).get(resource, 0)
        return f"{human.amount(resource, used)}/{human.amount(resource, total)}"

    return used_of_total


def _node_gpus(item: Item, now: datetime) -> str:
    amounts = item.get("gpus") or {}
    return f"{amounts.get('requested', 0)}/{amounts.get('allocatable', 0)}"


def regarding(item: Item, now: datetime) -> str:
    about = item.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _labels(item: Item, now: datetime) -> str:
    return human.pairs(item.get("labels") or {})


_JOB: dict[str, Cell] = {
    "NAME": value("name"),
    "KIND": value("kind"),
    "STATE": _job_state,
    "CLUSTER": value("cluster"),
    "PODS": _pods,
    "GPUS": value("gpus"),
    "DURATION": _job_age,
    "AGE": age("created_at"),
}
_UPSTREAM_STATES = {
    **{state: state for state in ("Running", "Suspended", "Succeeded", "Failed")},
    **{"Reclaiming": "Running", "Backoff": "Restarting"},
}
_FIRST: dict[str, Cell] = {"NAME": _JOB["NAME"], "STATE": _upstream_state, "AGE": _JOB["AGE"]}
_ADDED: dict[str, Cell] = {head: cell for head, cell in _JOB.items() if head not in ("KIND", *_FIRST)}
_JOB_OF_KIND: dict[str, Cell] = {**_FIRST, "FLEET STATE": _JOB["STATE"], **_ADDED}
"""Where the kind was asked for, as kubectl prints it, and then what the fleet adds."""
_JOB_WIDE: dict[str, Cell] = {
    "ATTEMPT": value("attempt"),
    "PRIORITY": value("priority"),
    "POLICY": _policy,
    "REASON": _reason,
    "PROGRESS": _progress,
    "ETA": _eta,
    "LOSS": _loss,
    "WORLD": value("progress", "world_size"),
}
_POLICY: dict[str, Cell] = {"NAME": value("name"), "KIND": value("kind"), "AGE": age("created_at")}

JOBS = Kind(("job", "jobs"), "jobs", _JOB, _JOB_WIDE)


def job_kind(words: tuple[str, ...], kind: str, group: str = "") -> Kind:
    """A kind that lists only jobs of one kind."""
    return Kind(words, "jobs", _JOB_OF_KIND, _JOB_WIDE, api_kind=kind, api_group=group)


CLUSTERS = Kind(
    ("cluster", "clusters"),
    "clusters",
    {
        "NAME": value("name"),
        "STATE": _cluster_state,
        "NODES": _ready,
        "GPUS FREE": _gpus_free,
        "VERSION": value("version"),
        "SCHEDULER": lambda item, now: item.get("scheduler") or "Unknown",
        "RESERVATION": _reservation,
        "HEARTBEAT": age("last_heartbeat"),
    },
    {"REGION": value("region"), "ZONE": value("zone"), "CPU FREE": lambda item, now: free_of(item, "cpu"),
     "MEMORY FREE": lambda item, now: free_of(item, "memory"), "LABELS": _labels,
     "MESSAGE": value("message")},
    namespaced=False,
)  # fmt: skip
NODES = Kind(
    ("node", "nodes"),
    "nodes",
    {
        "CLUSTER": value("cluster"),
        "NAME": value("name"),
        "STATE": _node_state,
        "GPUS": _node_gpus,
        "CPU": _node_amount("cpu"),
        "MEMORY": _node_amount("memory"),
        "PODS": _node_amount("pods"),
    },
    {"EXCLUDED": _exclusion, "LABELS": _labels},
    namespaced=False,
)
POLICIES = Kind(
    ("policy", "policies", "propagationpolicy", "propagationpolicies", "pp"), "policies", _POLICY, {}
)  # fmt: skip
CLUSTER_POLICIES = Kind(
    ("clusterpropagationpolicy", "clusterpropagationpolicies", "cpp"),
    "policies",
    _POLICY,
    {},
    namespaced=False,
    api_kind="ClusterPropagationPolicy",
)
BINDINGS = Kind(
    ("binding", "bindings"),
    "bindings",
    {
        "JOB": value("job_name"),
        "CLUSTER": value("cluster"),
        "ATTEMPT": value("attempt"),
        "SCHEDULED": age("scheduled_at"),
        "RESULT": value("result"),
    },
    {},
)
QUEUES = Kind(
    ("queue", "queues"),
    "queues",
    {"NAME": value("name"), "AGE": age("created_at")},
    {"QUOTA": value("path"), "STATE": value("state"), "COMMENT": value("state_comment")},
    namespaced=False,
)
EVENTS = Kind(
    ("event", "events", "ev"),
    "events",
    {"LAST SEEN": age("last_at"), "TYPE": value("type"), "REASON": value("reason"), "OBJECT": regarding,
     "MESSAGE": value("message")},
    {"SOURCE": value("source"), "COUNT": value("count")},
)  # fmt: skip
PODS = Kind(
    ("pod", "pods", "po"),
    "pods",
    {
        "NAME": value("name"),
        "READY": value("ready"),
        "STATUS": _pod_status,
        "RESTARTS": value("restarts"),
        "AGE": age("created_at"),
        "CLUSTER": value("cluster"),
        "NODE": value("node"),
    },
    {"ROLE": value("role"), "INDEX": value("index"), "REASON": value("reason")},
)
ADDONS = Kind(
    ("addon", "addons"),
    "addons",
    {
        "NAME": value("name"),
        "CLUSTER": value("cluster"),
        "STATE": value("state"),
        "READY": lambda item, now: f"{item.get('ready', 0)}/{item.get('pods', 0)}",
        "RENEWED": age("renewed_at"),
        "MESSAGE": value("message"),
    },
    {"NAMESPACE": value("namespace"), "HOLDER": value("holder")},
    namespaced=False,
)
SPOT = Kind(
    ("spot", "reclaims"),
    "spot",
    {
        "NODE": value("node"),
        "CLUSTER": value("cluster"),
        "POOL": value("pool"),
        "AGE": age("at"),
        "CAUSE": value("cause"),
        "NOTICE": lambda item, now: human.duration(item["notice_s"]),
        "PODS": lambda item, now: len(item["pods"]),
        "SAVED": lambda item, now: str(item["saved"]),
        "LOST": lambda item, now: str(item["lost"]),
        "GPU-MINUTES-LOST": lambda item, now: f"{item['lost_gpu_minutes']:.1f}",
        "JOBS": lambda item, now: _jobs_of_reclaim(item),
    },
    {},
    namespaced=False,
)
OF_ONE = (PODS, ADDONS, SPOT)
"""Kinds of which the name is that of a job or a cluster, which has several."""
ALL = (JOBS, CLUSTERS, NODES, POLICIES, CLUSTER_POLICIES, BINDINGS, QUEUES, EVENTS, PODS, ADDONS, SPOT)
"""All kinds except the server's kinds of jobs, which `frontend.cli.job_kinds` adds."""


def _jobs_of_reclaim(item: Item) -> str:
    """Jobs of namespaces that the caller may not read have no names."""
    names = {f"{pod['namespace']}/{pod['name']}" for pod in item["pods"] if pod["name"]}
    return ",".join(sorted(names))


def find(word: str) -> Kind | None:
    return next((kind for kind in ALL if word.lower() in kind.words), None)
