"""Pod templates as all kinds share them: what one pod asks for, and which other objects it refers to.

The arithmetic of a request is the fleet's (`fleet.core.units`): the members' own pods are counted with the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fleet.core import units
from fleet.kube.quantities import QuantityError
from jobs.kinds.base import Amounts, Faults, Manifest

DEVICE_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate")
_CLAIM_FIELDS = ("resourceClaimName", "resourceClaimTemplateName")
_CLAIM_KINDS = tuple(zip(_CLAIM_FIELDS, DEVICE_CLAIMS, strict=True))


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """An object in the job's namespace that its pods need before they can start."""

    kind: str
    name: str


def read_template(
    template: object, path: str, faults: Faults, *, container: str = "", restart: tuple[str, ...] = ()
) -> Amounts:
    """One pod's request in whole units; faults name the field under ``path``.

    ``container`` must be among the containers when given; ``restart`` are the restart policies the kind allows.
    """
    body = faults.mapping(template, path, required=True)
    read_metadata(body.get("metadata"), f"{path}.metadata", faults)
    spec = faults.mapping(body.get("spec"), f"{path}.spec", required=True)
    containers = spec.get("containers")
    if not isinstance(containers, list) or not containers:
        faults.add(f"{path}.spec.containers", "must list at least one container")
        return {}
    if not all(isinstance(c, dict) for c in containers):
        faults.add(f"{path}.spec.containers", "must be a list of objects")
        return {}
    if container and container not in [c.get("name") for c in containers]:
        faults.add(f"{path}.spec.containers", f"one container must be named {container!r}")
    if restart:
        faults.one_of(spec.get("restartPolicy", ""), f"{path}.spec.restartPolicy", restart)
    for i, each in enumerate(containers):
        if not each.get("name"):
            faults.add(f"{path}.spec.containers[{i}].name", "is required")
        if not each.get("image"):
            faults.add(f"{path}.spec.containers[{i}].image", "is required")
    try:
        references(spec)
        _read_scheduling(spec, f"{path}.spec", faults)
        return units.pod_request(spec)
    except QuantityError as e:
        faults.add(f"{path}.spec", str(e))
    except (AttributeError, TypeError, ValueError):
        faults.add(f"{path}.spec", "holds a value of the wrong type: compare it with the Kubernetes Pod reference")
    return {}


def read_metadata(metadata: object, path: str, faults: Faults) -> None:
    """Checks the labels and annotations, for the fleet adds its own to them."""
    held = faults.mapping(metadata, path)
    for field in ("labels", "annotations"):
        faults.mapping(held.get(field), f"{path}.{field}")


def _read_scheduling(spec: Manifest, path: str, faults: Faults) -> None:
    """Refuses what the placement does not look at, and what would leave placed pods pending in their cluster."""
    affinity = spec.get("affinity") if isinstance(spec.get("affinity"), dict) else {}
    near = (affinity or {}).get("podAffinity")
    if isinstance(near, dict) and near.get("requiredDuringSchedulingIgnoredDuringExecution"):
        faults.add(
            f"{path}.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "is not supported: prefer it (preferredDuringScheduling...), or keep the gang together by the job's annotation"
            " convoy.dev/topology: required",
        )
    for index, each in enumerate(spec.get("resourceClaims") or ()):
        stated = [each[field] for field in _CLAIM_FIELDS if each.get(field)]
        if len(stated) != 1 or not isinstance(stated[0], str) or not each.get("name"):
            faults.add(f"{path}.resourceClaims[{index}]", f"must have a name and one of {' and '.join(_CLAIM_FIELDS)}")
    for index, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        if isinstance(each, dict) and each.get("whenUnsatisfiable") != "ScheduleAnyway":
            faults.add(
                f"{path}.topologySpreadConstraints[{index}].whenUnsatisfiable",
                "must be ScheduleAnyway: the placement does not spread pods; keep them apart by a required podAntiAffinity",
            )


def references(spec: Manifest) -> set[Reference]:
    """ConfigMaps, Secrets, claims and the service account a pod spec names; optional ones included."""
    names = set(_volumes(spec)) | set(_environment(spec)) | set(device_claims(spec))
    for pull in spec.get("imagePullSecrets") or []:
        names.add(Reference("Secret", pull.get("name", "")))
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account and account != "default":
        names.add(Reference("ServiceAccount", account))
    return {each for each in names if each.name}


def device_claims(spec: Manifest) -> list[Reference]:
    """The claims by which a pod asks for devices, in their order."""
    entries = [(each.get(field), kind) for each in spec.get("resourceClaims") or () for field, kind in _CLAIM_KINDS]
    return [Reference(kind, name) for name, kind in entries if name]


def _volumes(spec: Manifest) -> Iterator[Reference]:
    for volume in spec.get("volumes") or []:
        for source in (volume, *((volume.get("projected") or {}).get("sources") or [])):
            if (claim := source.get("persistentVolumeClaim")) is not None:
                yield Reference("PersistentVolumeClaim", claim.get("claimName", ""))
            if (config := source.get("configMap")) is not None:
                yield Reference("ConfigMap", config.get("name", ""))
            if (secret := source.get("secret")) is not None:
                yield Reference("Secret", secret.get("secretName") or secret.get("name", ""))


def _environment(spec: Manifest) -> Iterator[Reference]:
    containers: list[dict[str, Any]] = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    for container in containers:
        for entry in container.get("envFrom") or []:
            yield Reference("ConfigMap", (entry.get("configMapRef") or {}).get("name", ""))
            yield Reference("Secret", (entry.get("secretRef") or {}).get("name", ""))
        for entry in container.get("env") or []:
            source = entry.get("valueFrom") or {}
            yield Reference("ConfigMap", (source.get("configMapKeyRef") or {}).get("name", ""))
            yield Reference("Secret", (source.get("secretKeyRef") or {}).get("name", ""))
