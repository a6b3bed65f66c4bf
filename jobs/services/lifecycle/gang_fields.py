"""The fields of a job's row that follow from its manifest alone: what its gang is made of, and what it asks for.

Written when a manifest is taken in, and when the size of a running job changes.
"""

from typing import Any

from fleet.core import devices
from jobs.core.admission import backfill_policy
from jobs.core.gang import requirements, topology_constraints
from jobs.core.manifest_fields import Faults
from jobs.core.policies import preferences
from jobs.core.resizing.elastic import is_elastic
from jobs.kinds.base import Kind, Manifest, Reading
from jobs.kinds.pods import references
from jobs.models import Job
from jobs.services.lifecycle import volume_claims

FILLED = ("roles", "total", "gpus", "size", "elastic")


def fill(job: Job, kind: Kind, reading: Reading) -> None:
    """Fills the fields `FILLED` from ``job.manifest``, of which ``reading`` is the reading."""
    job.total = reading.total()
    job.gpus = sum(role.replicas * devices.count(role.request) for role in reading.roles)
    job.roles = _roles(kind, job.manifest, reading)
    replicas = {role.name: role.replicas for role in reading.roles}
    sizes = {
        role: {"replicas": replicas[role], "min": bounds.least, "max": bounds.most}
        for role, bounds in kind.bounds(job.manifest).items()
        if role in replicas
    }
    job.size = sizes or None
    job.elastic = bool(sizes) and is_elastic(job.manifest["metadata"].get("annotations"), Faults())


def _roles(kind: Kind, manifest: Manifest, reading: Reading) -> list[dict[str, Any]]:
    templates = dict(kind.templates(manifest))
    pods = ((role.name, role.replicas, templates.get(role.name, {})) for role in reading.roles)
    within = topology_constraints.parse_topology_constraints(manifest, templates.values(), Faults())
    data = preferences.data(manifest["metadata"].get("annotations") or {}, Faults())
    gang = requirements.parse_pod_requirements(
        pods,
        within=within,
        scheduler=kind.scheduler(manifest),
        data=data,
        requests={role.name: role.request for role in reading.roles},
    )
    needs = requirements.requirements_as_json(gang)
    lasts = {
        name: s for name, template in templates.items() if (s := backfill_policy.declared_runtime(template)) is not None
    }
    mounts = {name: _mounted(template) for name, template in templates.items()}
    mounted = sorted({claim for claims in mounts.values() for claim in claims})
    return [
        {
            "name": role.name,
            "replicas": role.replicas,
            "request": role.request,
            **({"needs": needs[role.name]} if role.name in needs else {}),
            **({"divides": reading.divides} if reading.divides is not None else {}),
            **({"lasts": lasts[role.name]} if role.name in lasts else {}),
            **({"claims": mounted} if mounted and role is reading.roles[0] else {}),
            **({"mounts": mounts[role.name]} if mounts.get(role.name) else {}),
        }
        for role in reading.roles
    ]


def _mounted(template: Manifest) -> list[str]:
    """The names of the volume claims that the pods of a template mount."""
    return sorted({each.name for each in references(template.get("spec") or {}) if each.kind == volume_claims.CLAIM})
