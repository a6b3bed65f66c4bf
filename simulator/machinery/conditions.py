"""Changes a job's list of conditions as the training operator and the Job controller do. No I/O."""

from simulator.machinery.clock import stamp
from simulator.machinery.objects import Object

_REPLACES = {"Running": "Restarting", "Restarting": "Running"}


def has(status: Object, kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in status.get("conditions") or [])


def put(status: Object, kind: str, *, true: bool, reason: str, message: str, now: float) -> None:
    """Sets the condition. A changed one moves to the end of the list; Running and Restarting replace each other."""
    conditions = status.setdefault("conditions", [])
    value = "True" if true else "False"
    old = next((c for c in conditions if c["type"] == kind), None)
    if old is not None and (old["status"], old["reason"], old["message"]) == (value, reason, message):
        return
    moved = stamp(now)
    since = old["lastTransitionTime"] if old is not None and old["status"] == value else moved
    rival = _REPLACES.get(kind) if true else None
    status["conditions"] = [c for c in conditions if c["type"] not in (kind, rival)] + [
        {
            "type": kind,
            "status": value,
            "reason": reason,
            "message": message,
            "lastUpdateTime": moved,
            "lastTransitionTime": since,
        }
    ]


def deny(status: Object, kind: str, *, reason: str, message: str, now: float) -> None:
    """Sets a condition to False if it is True."""
    if has(status, kind):
        put(status, kind, true=False, reason=reason, message=message, now=now)


def difference(old: Object, new: Object) -> Object:
    """The merge patch that changes ``old`` into ``new``. Empty if they are equal."""
    patch: Object = dict.fromkeys(key for key in old if key not in new)
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = difference(before, value)
            if inner:
                patch[key] = inner
        elif key not in old or before != value:
            patch[key] = value
    return patch
