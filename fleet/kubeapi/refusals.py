"""What a service refused, as the Status an API server sends: kubectl prints each field at fault with the value it had.

Knows the words of Kubernetes for it (``Invalid value``, ``Required value``); what is wrong was said by the service.
"""

import json
import re
from typing import Any

from fleet.errors import ConvoyError, FieldFault
from fleet.kube.requests import status
from fleet.kube.requests.status import KubeError
from fleet.kube.server.kinds import Object
from fleet.kubeapi.objects.kinds import Target

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_ABSENT = object()
_LONGEST = 200
"""Characters of a value that are shown."""


def of(error: ConvoyError, target: Target, meant: Object) -> KubeError:
    """``meant`` is what was to be stored, where something was."""
    resource, name = target.kind.served.resource, _name(target, meant)
    if error.status == 422 and error.faults:
        return status.faulty(resource, name, [_cause(fault, meant) for fault in error.faults])
    details: Object = {"name": name, "group": resource.group, "kind": resource.plural}
    details |= {"causes": [_cause(fault, meant) for fault in error.faults]} if error.faults else {}
    details = {key: value for key, value in details.items() if value}
    if error.status == 403:
        what = f'{resource.qualified} "{name}"' if name else resource.qualified
        return KubeError(403, f"{what} is forbidden: {error.message}", details=details)
    if error.status == 409:
        message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {error.message}'
        return KubeError(409, message, details=details)
    return KubeError(error.status, error.message, details=details)


def _cause(fault: FieldFault, meant: Object) -> Object:
    value = _value(meant, fault.field)
    if value in (_ABSENT, None, ""):
        missing = fault.detail == "is required"
        reason = "FieldValueRequired" if missing else "FieldValueInvalid"
        message = "Required value" if missing else f"Invalid value: {fault.detail}"
    else:
        shown = json.dumps(value, default=str)
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
        reason, message = "FieldValueInvalid", f"Invalid value: {shown}: {fault.detail}"
    return {"reason": reason, "field": fault.field, "message": message}


def _value(value: Any, path: str) -> Any:
    """What is at ``spec.containers[0].name``; keys that hold dots themselves are not looked for."""
    for name, index in _STEP.findall(path):
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            return _ABSENT
    return value


def _name(target: Target, meant: Object) -> str:
    metadata = meant.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return target.name or (name if isinstance(name, str) else "")
