"""The query options of a write: fieldManager, dryRun, force and fieldValidation."""

from collections.abc import Mapping
from dataclasses import dataclass

from fleet.kube.requests.status import KubeError

APPLY_PATCH = "application/apply-patch+yaml"
IGNORE, WARN, STRICT = "Ignore", "Warn", "Strict"
_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_LONGEST = 128
_TRUTHS = ("1", "t", "T", "true", "TRUE", "True")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    manager: str = "unknown"
    dry: bool = False
    force: bool = False
    validation: str = IGNORE


def read(method: str, query: Mapping[str, str], content_type: str, user_agent: str) -> WriteOptions:
    """Reads the options; raises Invalid. The default of ``fieldManager`` is the name of the client program."""
    kind, applies = _KINDS.get(method, "DeleteOptions"), content_type == APPLY_PATCH
    manager, force = query.get("fieldManager", ""), query.get("force", "") in _TRUTHS
    if len(manager.encode()) > _LONGEST:
        raise _fault(kind, "FieldValueTooLong", "fieldManager", f"Too long: must have at most {_LONGEST} bytes")
    if not manager.isprintable():
        message = f'Invalid value: "{manager!a}": should only contain printable characters'
        raise _fault(kind, "FieldValueInvalid", "fieldManager", message)
    if applies and not manager:
        raise _fault(kind, "FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
    if "force" in query and not applies:
        message = "Forbidden: may not be specified for non-apply patch"
        raise _fault(kind, "FieldValueForbidden", "force", message)
    if (dry := query.get("dryRun", "")) not in ("", "All"):
        message = f'Unsupported value: "{dry}": supported values: "All"'
        raise _fault(kind, "FieldValueNotSupported", "dryRun", message)
    if (validation := query.get("fieldValidation") or WARN) not in (IGNORE, WARN, STRICT):
        message = f'Unsupported value: "{validation}": supported values: "", "Ignore", "Strict", "Warn"'
        raise _fault(kind, "FieldValueNotSupported", "fieldValidation", message)
    return WriteOptions(manager or _program(user_agent), bool(dry), force, validation)


def _program(user_agent: str) -> str:
    name = user_agent.partition("/")[0].encode()[:_LONGEST].decode(errors="ignore")
    return name if name.isprintable() and name else "unknown"


def _fault(options: str, reason: str, field: str, message: str) -> KubeError:
    causes = [{"reason": reason, "message": message, "field": field}]
    details = {"group": "meta.k8s.io", "kind": options, "causes": causes}
    return KubeError(422, f'{options}.meta.k8s.io "" is invalid: {field}: {message}', details=details)
