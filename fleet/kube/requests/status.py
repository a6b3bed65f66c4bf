"""Kubernetes Status objects: error responses with the code, the reason and the details that clients use."""

from collections.abc import Mapping, Sequence
from typing import Any

from fleet.kube.resources import Resource

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


_CAUSES = {
    "Required value": "FieldValueRequired",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Duplicate value": "FieldValueDuplicate",
    "Too long": "FieldValueTooLong",
}


class KubeError(Exception):
    """An error that is sent to the client as a Status object."""

    def __init__(self, code: int, message: str, *, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or _REASONS.get(code, "Unknown")
        self.details = details or {}

    def as_status(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        # kubectl reads the details of each 404 without looking whether there are any.
        if self.details or self.code == 404:
            status["details"] = self.details
        return {**status, "code": self.code}


def success(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """The answer to a delete that removed the object at once."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(resource, name), "uid": uid},
    }


def not_found(resource: Resource, name: str) -> KubeError:
    return KubeError(404, f'{resource.qualified} "{name}" not found', details=_details(resource, name))


def unknown_path() -> KubeError:
    return KubeError(404, "the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> KubeError:
    message = f'{resource.qualified} "{name}" already exists'
    return KubeError(409, message, reason="AlreadyExists", details=_details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> KubeError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return KubeError(409, message, details=_details(resource, name))


def changed(resource: Resource, name: str) -> KubeError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def invalid(resource: Resource, name: str, field: str, why: str) -> KubeError:
    """An error about one invalid field. Clients show ``details.causes``."""
    reason = next((reason for prefix, reason in _CAUSES.items() if why.startswith(prefix)), "FieldValueInvalid")
    return faulty(resource, name, [{"reason": reason, "message": why, "field": field}])


def faulty(resource: Resource, name: str, causes: Sequence[Mapping[str, str]]) -> KubeError:
    """An error about several invalid fields."""
    messages = [f"{cause['field']}: {cause['message']}" for cause in causes]
    listed = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = {**_details(resource, name), "kind": resource.kind, "causes": [dict(cause) for cause in causes]}
    return KubeError(422, f'{kind} "{name}" is invalid: {listed}', details=details)


def expired(message: str = "too old resource version") -> KubeError:
    return KubeError(410, message)


def _details(resource: Resource, name: str) -> dict[str, Any]:
    details = {"name": name, "kind": resource.plural}
    return {**details, "group": resource.group} if resource.group else details
