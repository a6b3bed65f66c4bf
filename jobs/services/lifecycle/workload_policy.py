"""Whether a manifest keeps to the policy of its namespace: asked when it is submitted, and of each copy that is sent.

Between the two, override policies and the admin's word may have changed; the answer for a copy is the one that counts.
"""

from collections.abc import Sequence

from fleet.core.security import pod_security
from fleet.core.security.pod_security import Profile
from fleet.errors import FieldFault
from fleet.services.authorization import namespace_policies
from jobs.kinds import registry
from jobs.kinds.base import RESOLVED, Manifest
from jobs.models import Dependent

_SHOWN = 3
_RESOLVED_PATH = f"{RESOLVED}.runtime."
_RUNTIME_PATH = "spec.runtimeRef: "


class PolicyViolated(Exception):
    """A copy that may not be sent; the message names the fields."""


def faults(manifests: Sequence[Manifest]) -> list[list[FieldFault]]:
    """The faults of each manifest, as it was submitted."""
    spaces = [_namespace(manifest) for manifest in manifests]
    profiles = namespace_policies.profiles(space for space in spaces if space)
    return [
        _faults(manifest, profiles.get(space, namespace_policies.DEFAULT))
        for manifest, space in zip(manifests, spaces, strict=True)
    ]


def require(namespace: str, copy: Manifest) -> Profile:
    """The namespace's profile, which the copy keeps to; raises `PolicyViolated`."""
    profile = namespace_policies.profile(namespace)
    if refused := _violations(copy, profile):
        shown = "; ".join(f"{fault.field} {fault.detail}" for fault in refused[:_SHOWN])
        raise PolicyViolated(f"it violates level {profile.level} of namespace {namespace}: {shown}")
    return profile


def _namespace(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, dict) else ""


def _faults(manifest: Manifest, profile: Profile) -> list[FieldFault]:
    kind = manifest.get("kind")
    if kind == "Secret" and manifest.get("type") == namespace_policies.TOKEN_SECRET:
        return [FieldFault("type", namespace_policies.TOKEN_SECRET_REFUSED)]
    if kind in Dependent.RUNTIMES:
        return _violations(manifest, profile, whole=False)
    is_job = registry.find(str(manifest.get("apiVersion")), str(kind)) is not None
    return _violations(manifest, profile) if is_job else []


def _violations(manifest: Manifest, profile: Profile, *, whole: bool = True) -> list[FieldFault]:
    level = f"(level {profile.level} of the namespace)"
    return [
        FieldFault(violation.field.replace(_RESOLVED_PATH, _RUNTIME_PATH), f"{violation.detail} {level}")
        for violation in pod_security.violations(manifest, profile, whole=whole)
    ]
