"""What is wrong in the annotations of a job, and in the constraints of topology that they add to: found before it is stored."""

from datetime import UTC, datetime

from fleet.errors import FieldFault
from jobs.core.failover.hang_policy import parse_on_hang
from jobs.core.failover.lifecycle import parse_deadline
from jobs.core.failover.node_check import parse_node_check
from jobs.core.gang import topology_constraints
from jobs.core.life.dependencies import parse_after
from jobs.core.manifest_fields import Faults
from jobs.core.policies import preferences
from jobs.core.resizing.elastic import is_elastic
from jobs.core.topology import speed
from jobs.kinds.base import Kind, Manifest
from jobs.services.submission.changes import restarts


def find(kind: Kind, manifest: Manifest) -> list[FieldFault]:
    faults = Faults()
    topology_constraints.parse_topology_constraints(
        manifest, (template for _, template in kind.templates(manifest)), faults
    )
    speed.parse_training(manifest["metadata"].get("annotations") or {}, faults)
    preferences.data(manifest["metadata"].get("annotations") or {}, faults)
    is_elastic(manifest["metadata"].get("annotations"), faults)
    parse_after(manifest["metadata"].get("annotations"), faults)
    parse_deadline(manifest["metadata"].get("annotations"), datetime.min.replace(tzinfo=UTC), faults)
    restarts.is_asked_for(manifest["metadata"].get("annotations") or {}, faults)
    parse_on_hang(manifest["metadata"].get("annotations"), faults)
    parse_node_check(manifest["metadata"].get("annotations"), faults)
    return faults.found
