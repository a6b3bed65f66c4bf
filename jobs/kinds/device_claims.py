"""Devices that pods ask for by claims (dynamic resource allocation, `resource.k8s.io/v1`), as amounts of resources. Pure.

A pod names a ResourceClaimTemplate, or a ResourceClaim that is its own. What these ask for is written beside the job's spec
when it is submitted (`DEVICES`), one resource for each DeviceClass: totals, quotas, sizes and the placement then count it like
every other request. Claims that ask for more than a number of devices of a class are refused by their field.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fleet.core.dra import classes
from fleet.errors import FieldFault, InvalidInput
from fleet.kube import names
from jobs.kinds.base import DEVICES, RESOLVED, Amounts, Faults, Find, Kind, Manifest, Reading, Role
from jobs.kinds.pods import DEVICE_CLAIMS, Reference, device_claims

CLAIM, TEMPLATE = DEVICE_CLAIMS
_MOST = 32
"""Devices of a claim, by Kubernetes' own limit."""
_NO_ATTRIBUTES = "is not supported: the placement does not look at attributes of devices"
_BY_CLASS = f"{_NO_ATTRIBUTES}. Name a DeviceClass of the clusters that has these selectors"


def faults_of(manifest: Manifest) -> list[FieldFault]:
    """Of a ResourceClaim or a ResourceClaimTemplate that a person applies."""
    faults = Faults()
    _read(manifest, faults)
    return faults.found


def refuse_other_spec(before: Manifest, manifest: Manifest) -> None:
    """As in Kubernetes the spec of a claim never changes: jobs were counted by it. Raises `InvalidInput`."""
    if manifest.get("kind") in DEVICE_CLAIMS and before.get("spec") != manifest.get("spec"):
        detail = "is immutable: delete it and apply it anew, or under another name"
        raise InvalidInput(f"spec {detail}", (FieldFault("spec", detail),))


def amounts_of(manifest: Manifest) -> Amounts | None:
    """The devices that a claim asks for; None if it asks for anything that is not counted."""
    faults = Faults()
    amounts = _read(manifest, faults)
    return None if faults.found else amounts


def names_claims(kind: Kind, manifest: Manifest) -> bool:
    return any(_named(template) for _, template in kind.templates(manifest))


def resolve(kind: Kind, manifest: Manifest, find: Find, before: Mapping[str, Amounts]) -> None:
    """Writes what the claims of the pods ask for into the manifest, in place. The manifest has no faults.

    ``before`` is what the job, if it has been placed, was counted with: it keeps that, whatever became of its claims.
    """
    manifest.pop(DEVICES, None)
    namespace = str(manifest["metadata"].get("namespace") or "default")
    references = {each for _, template in kind.templates(manifest) for each in _named(template)}
    amounts: dict[str, Amounts | None] = {}
    for each in sorted(references):
        key = f"{each.kind}/{each.name}"
        claim = None if key in before else find(each.kind, namespace, each.name)
        amounts[key] = before.get(key) if claim is None else amounts_of(claim)
    manifest[DEVICES] = {key: counted for key, counted in amounts.items() if counted is not None}


def counted(kind: Kind, manifest: Manifest, reading: Reading) -> Reading:
    """The reading of the manifest with the devices of its pods' claims; with a fault for each claim that is not counted."""
    if reading.faults:
        return reading
    faults = Faults()
    devices: dict[str, Amounts] = {}
    roles = {role.name: role for role in reading.roles}
    for name, template in kind.templates(manifest):
        for index, reference in enumerate(_named(template)):
            path = f"{_path(manifest, template)}.spec.resourceClaims[{index}]"
            amounts = (manifest.get(DEVICES) or {}).get(f"{reference.kind}/{reference.name}")
            if amounts is None:
                faults.add(
                    path,
                    f"there is no {reference.kind} {reference.name} in this namespace of the fleet: apply it first",
                )
            elif name not in roles:
                continue  # no pods of it are asked for
            elif reference.kind == CLAIM and not _is_of_one_pod(kind, manifest, roles[name], reference):
                faults.add(
                    path, f"names one {CLAIM} for several pods, which would have to share a node: name a {TEMPLATE}"
                )
            else:
                devices[name] = _plus(devices.get(name, {}), amounts)
    if faults.found:
        return replace(reading, faults=tuple(faults.found))
    if not devices:
        return reading
    return replace(reading, roles=tuple(_with(role, devices.get(role.name, {})) for role in reading.roles))


def read(kind: Kind, manifest: Manifest) -> Reading:
    """As `Kind.read`, with the devices of claims."""
    return counted(kind, manifest, kind.read(manifest))


def _named(template: Manifest) -> list[Reference]:
    return device_claims(template.get("spec") or {})


def _with(role: Role, devices: Amounts) -> Role:
    return replace(role, request=_plus(role.request, devices)) if devices else role


def _plus(one: Amounts, other: Amounts) -> Amounts:
    return {**one, **{name: one.get(name, 0) + amount for name, amount in other.items()}}


def _is_of_one_pod(kind: Kind, manifest: Manifest, role: Role, reference: Reference) -> bool:
    naming = sum(reference in _named(template) for _, template in kind.templates(manifest))
    return naming == 1 and role.replicas <= 1 and role.name not in kind.bounds(manifest)


def _path(manifest: Manifest, template: Manifest) -> str:
    """The path of a template that is in the manifest; of what a job is read by, that of the reference."""
    path = next(_paths(manifest, template), "spec")
    return f"spec.runtimeRef: {path.removeprefix(f'{RESOLVED}.runtime.')}" if path.startswith(RESOLVED) else path


def _paths(value: object, target: object, path: str = "") -> Iterator[str]:
    if value is target:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, target, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, target, f"{path}[{index}]")


def _read(manifest: Manifest, faults: Faults) -> Amounts:
    path = "spec.spec" if manifest.get("kind") == TEMPLATE else "spec"
    spec = faults.mapping(manifest.get("spec"), "spec", required=True)
    if manifest.get("kind") == TEMPLATE:
        spec = faults.mapping(spec.get("spec"), path, required=True)
    devices = faults.mapping(spec.get("devices"), f"{path}.devices", required=True)
    if devices.get("constraints"):
        faults.add(f"{path}.devices.constraints", f"{_NO_ATTRIBUTES}, and would leave pods pending: leave it out")
    requests = devices.get("requests")
    if not isinstance(requests, list) or not requests:
        faults.add(f"{path}.devices.requests", "must list at least one request of devices")
        return {}
    amounts: Amounts = {}
    for index, request in enumerate(requests):
        where = f"{path}.devices.requests[{index}]"
        amounts = _plus(amounts, _request(faults.mapping(request, where, required=True), where, faults))
    if sum(amounts.values()) > _MOST:
        faults.add(f"{path}.devices.requests", f"must ask for at most {_MOST} devices together")
    return amounts


def _request(request: Manifest, where: str, faults: Faults) -> Amounts:
    if request.get("firstAvailable"):
        faults.add(f"{where}.firstAvailable", "is not supported: which of them counts is not known before. Use exactly")
        return {}
    exactly, where = faults.mapping(request.get("exactly"), f"{where}.exactly", required=True), f"{where}.exactly"
    if exactly.get("selectors"):
        faults.add(f"{where}.selectors", _BY_CLASS)
    if exactly.get("capacity"):
        faults.add(f"{where}.capacity", f"{_NO_ATTRIBUTES}: leave it out")
    if exactly.get("adminAccess"):
        faults.add(f"{where}.adminAccess", "is not supported: jobs have devices of their own")
    faults.one_of(exactly.get("allocationMode"), f"{where}.allocationMode", ("ExactCount",))
    count = faults.whole(exactly.get("count"), f"{where}.count", default=1, at_least=1)
    if detail := names.subdomain_fault(exactly.get("deviceClassName")):
        faults.add(f"{where}.deviceClassName", detail)
        return {}
    return {classes.resource_of(str(exactly["deviceClassName"])): count}
