"""What the fleet needs to know of a member's node or pod, read out of the manifest its API gave.

An observed object is small and comparable: the rest of the manifest is dropped at once, and equal objects cause no write. A
member's answer is not trusted to be sound: what cannot be read counts as absent, and never as an error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from fleet.core import node_problems, units
from fleet.core.members import marks
from fleet.core.members.pods import pod_details, pod_reasons, pod_state
from fleet.kube import names
from fleet.kube.quantities import QuantityError

Manifest = Mapping[str, Any]
Amounts = dict[str, int]
Key = tuple[str, str]
"""Namespace and name."""

RoleReader = Callable[[str, dict[str, str]], tuple[str, int]]
"""Role and index of a pod, by the kind that owns it and its labels (annotations included)."""
BEST_EFFORT = (("alibabacloud.com/compute-qos", "best-effort"), ("koordinator.sh/qosClass", "BE"))
"""Labels by which a pod says that its place may be taken back at any time: of ACS and ACK, and of Koordinator."""
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_MOST = 2**31 - 1
"""The largest number a column holds."""
FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class ObservedNode:
    name: str
    ready: bool
    unschedulable: bool
    labels: dict[str, str]
    taints: list[dict[str, str]]
    allocatable: Amounts
    address: str = ""
    """Inside its cluster's network."""
    problem: str = ""
    """What its conditions and taints say is faulty (`fleet.core.node_problems`); empty: nothing."""

    @property
    def usable(self) -> bool:
        return self.ready and not self.unschedulable


@dataclass(frozen=True, slots=True)
class Mark:
    """The attempt of one of our jobs that a pod belongs to."""

    job_uid: UUID
    attempt: int


Proof = Callable[[Mark, str, object], bool]
"""Whether a pod of that attempt in that namespace would carry this mark."""


@dataclass(frozen=True, slots=True)
class OwnPod:
    """What is kept of a pod of one of our own jobs."""

    mark: Mark
    uid: str
    role: str
    index: int
    phase: str
    ready_containers: int
    containers: int
    restarts: int
    reason: str
    message: str
    created_at: datetime
    started_at: datetime | None
    exit_code: int | None = None
    disruption: str = ""
    running_since: datetime | None = None
    details: str = ""
    """The rest of what is shown of it, as JSON (`fleet.core.members.pods.pod_details`): one text takes the least memory."""
    state: str = ""
    """Annotations that are kept for later attempts of the job, as JSON (`fleet.core.members.pods.pod_state`)."""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    namespace: str
    name: str
    node: str
    """Empty: not bound yet."""
    counts: bool
    """Whether it takes room on its node: bound and not finished."""
    request: Amounts
    own: OwnPod | None = None
    claims: tuple[str, ...] = ()
    """The ResourceClaims by which it has devices."""
    proven: bool = True
    """Whether its mark shows that it is ours; else that is what its labels say."""
    best_effort: bool = False
    """Whether its place may be taken back at any time."""

    @property
    def key(self) -> Key:
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class ObservedRefusal:
    """A member's word that it does not create the pods or services of an object, as its event says it."""

    namespace: str
    kind: str
    name: str
    uid: str
    reason: str
    message: str
    """One line, cut: it may quote what a tenant wrote."""


_REFUSALS = ("FailedCreate", "FailedCreatePod", "FailedCreateService", "FailedCreatePodGroup", "ExceededQuota")
"""Reasons by which controllers say so: those of Kubernetes, of Kubeflow and of Volcano."""
_REASON_CHARS, _MESSAGE_CHARS = 40, 300


def refusal(manifest: Manifest) -> ObservedRefusal | None:
    """The refusal that an event reports; None: it reports something else, or about an object of another namespace.

    Who may write events of one namespace must not speak about objects of another. Nor about what can be no object: members do
    not check the name in an event, which may be as long as a request or hold what no database takes.
    """
    about, reason = _part(manifest, "involvedObject"), str(manifest.get("reason") or "")
    if manifest.get("type") != "Warning" or not reason.startswith(_REFUSALS):
        return None
    if about.get("namespace") != _part(manifest, "metadata").get("namespace"):
        return None
    if names.label_fault(about.get("namespace")) or names.subdomain_fault(about.get("name")):
        return None
    return ObservedRefusal(
        namespace=about["namespace"],
        kind=str(about.get("kind") or ""),
        name=about["name"],
        uid=str(about.get("uid") or ""),
        reason=_one_line(reason, _REASON_CHARS),
        message=_one_line(str(manifest.get("message") or ""), _MESSAGE_CHARS),
    )


def _one_line(text: str, limit: int) -> str:
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * limit])
    words = " ".join(printable.split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def node(manifest: Manifest) -> ObservedNode:
    meta, spec, status = _part(manifest, "metadata"), _part(manifest, "spec"), _part(manifest, "status")
    ready = next((c.get("status") for c in status.get("conditions") or [] if c.get("type") == "Ready"), "")
    taints = [
        {"key": t.get("key", ""), "value": t.get("value") or "", "effect": t.get("effect", "")}
        for t in spec.get("taints") or []
    ]
    inside = (a.get("address") for a in status.get("addresses") or [] if a.get("type") == "InternalIP")
    return ObservedNode(
        name=meta.get("name", ""),
        ready=ready == "True",
        unschedulable=bool(spec.get("unschedulable")),
        labels=dict(meta.get("labels") or {}),
        taints=taints,
        allocatable=_amounts(status.get("allocatable")),
        address=str(next(inside, None) or "")[:64],
        problem=node_problems.problem_of(status.get("conditions"), taints),
    )


def pod(manifest: Manifest, role_of: RoleReader, proves: Proof) -> ObservedPod:
    meta, spec, status = _part(manifest, "metadata"), _part(manifest, "spec"), _part(manifest, "status")
    at = spec.get("nodeName") or ""
    counts = bool(at) and status.get("phase") not in FINISHED
    labels = meta.get("labels") or {}
    mark = mark_of(labels)
    return ObservedPod(
        namespace=meta.get("namespace", ""),
        name=meta.get("name", ""),
        node=at,
        counts=counts,
        request=_request(spec) if counts else {},
        own=_own(mark, manifest, role_of) if mark else None,
        claims=_claims(spec, status) if counts else (),
        proven=mark is not None and proves(mark, meta.get("namespace", ""), labels.get(marks.POD_MARK)),
        best_effort=any(labels.get(name) == value for name, value in BEST_EFFORT),
    )


def _claims(spec: Manifest, status: Manifest) -> tuple[str, ...]:
    """Named by the pod itself, or made for it of a template."""
    entries = [*(spec.get("resourceClaims") or []), *(status.get("resourceClaimStatuses") or [])]
    claims = (each.get("resourceClaimName") for each in entries if isinstance(each, Mapping))
    return tuple(sorted({str(name) for name in claims if name}))


def mark_of(labels: Mapping[str, str]) -> Mark | None:
    """The attempt that these labels claim to belong to; None when they are not, or not soundly, labels of ours."""
    try:
        mark = Mark(UUID(labels[marks.JOB_UID]), int(labels[marks.ATTEMPT]))
    except (KeyError, ValueError, AttributeError, TypeError):
        return None
    return mark if 0 <= mark.attempt <= _MOST else None


def _own(mark: Mark, manifest: Manifest, role_of: RoleReader) -> OwnPod:
    meta, spec, status = _part(manifest, "metadata"), _part(manifest, "spec"), _part(manifest, "status")
    labels = {**(meta.get("annotations") or {}), **(meta.get("labels") or {})}
    owner = next((o.get("kind", "") for o in meta.get("ownerReferences") or [] if o.get("controller")), "")
    role, index = role_of(owner, labels)
    containers = status.get("containerStatuses") or []
    reason, message = pod_reasons.why(spec, status)
    return OwnPod(
        mark=mark,
        uid=meta.get("uid", ""),
        role=role[:63],
        index=min(index, _MOST),
        phase=status.get("phase") or "Pending",
        ready_containers=sum(1 for c in containers if c.get("ready")),
        containers=len(spec.get("containers") or []),
        restarts=max(sum(c.get("restartCount") or 0 for c in containers), 0),
        reason=reason[:128],
        message=message[:1000],
        created_at=_time(meta.get("creationTimestamp")) or _LONG_AGO,
        started_at=_time(status.get("startTime")),
        exit_code=_exit_code(containers),
        disruption=_disruption(status)[:64],
        running_since=_running_since(containers),
        details=pod_details.read(manifest),
        state=pod_state.read(_part(meta, "annotations"), index),
    )


def _exit_code(containers: list[dict[str, Any]]) -> int | None:
    for state in ("state", "lastState"):
        for container in containers:
            code = ((container.get(state) or {}).get("terminated") or {}).get("exitCode")
            if isinstance(code, int) and code and abs(code) <= _MOST:
                return code
    return None


def _disruption(status: Manifest) -> str:
    for condition in status.get("conditions") or []:
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return str(condition.get("reason") or "DisruptionTarget")
    return ""


def _running_since(containers: list[dict[str, Any]]) -> datetime | None:
    starts = [_time(((each.get("state") or {}).get("running") or {}).get("startedAt")) for each in containers]
    known = [start for start in starts if start]
    return max(known) if known and len(known) == len(starts) else None


def _request(spec: Manifest) -> Amounts:
    try:
        return units.pod_request(spec)
    except (QuantityError, AttributeError, TypeError, ValueError):
        return {"pods": 1}


def _amounts(quantities: object) -> Amounts:
    known: Amounts = {}
    for name, quantity in (quantities if isinstance(quantities, Mapping) else {}).items():
        try:
            known |= units.amounts({name: quantity})
        except (QuantityError, TypeError, ValueError):
            continue
    return known


def _part(manifest: Manifest, name: str) -> Manifest:
    part = manifest.get(name)
    return part if isinstance(part, Mapping) else {}


def _time(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
