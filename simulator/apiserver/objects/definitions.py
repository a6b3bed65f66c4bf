"""Validates CustomResourceDefinitions when they are created, and sets their status to established."""

from collections.abc import Iterator
from typing import Any

from fleet.kube.requests import status
from fleet.kube.resources import CRDS
from fleet.kube.schema.definitions import schema_faults
from fleet.kube.schema.validation import REQUIRED, Cause, cause
from simulator.apiserver.objects import rules

Object = dict[str, Any]


def established(definition: Object) -> Object:
    """The definition with its status. Raises Invalid for an invalid one."""
    spec, name = definition.get("spec") or {}, definition["metadata"]["name"]
    try:
        names, wanted = spec["names"], f"{spec['names']['plural']}.{spec['group']}"
        complete = names["kind"] and spec["scope"] in ("Namespaced", "Cluster")
        stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    except (KeyError, TypeError) as e:
        raise status.invalid(CRDS, name, "spec", f"Required value: {e}") from e
    if not complete or name != wanted:
        message = f'Invalid value: must be spec.names.plural+"."+spec.group, which is {wanted!r}'
        raise status.invalid(CRDS, name, "metadata.name", message)
    if len(stored) != 1 or not all(version.get("name") for version in spec["versions"]):
        message = "Invalid value: each version must have a name, and exactly one must be the storage version"
        raise status.invalid(CRDS, name, "spec.versions", message)
    if causes := list(_version_faults(spec["versions"])):
        raise status.faulty(CRDS, name, causes)
    now = rules.timestamp()
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": now}
        for kind, reason in (("NamesAccepted", "NoConflicts"), ("Established", "InitialNamesAccepted"))
    ]
    return {**definition, "status": {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}}


def _version_faults(versions: list[Object]) -> Iterator[Cause]:
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        document = (version.get("schema") or {}).get("openAPIV3Schema")
        if document is None:
            yield cause(REQUIRED, f"{path}.schema.openAPIV3Schema", "Required value: schemas are required")
        else:
            yield from schema_faults(document, f"{path}.schema.openAPIV3Schema")
        scale = (version.get("subresources") or {}).get("scale") or {}
        for field in ("specReplicasPath", "statusReplicasPath") if scale else ():
            if not str(scale.get(field) or "").startswith("."):
                yield cause(
                    REQUIRED, f"{path}.subresources.scale.{field}", "Required value: must be a path like .spec.x"
                )
