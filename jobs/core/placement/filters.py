"""Which clusters a gang may go to at all: the filters, in their order, with the messages that people read.

What is free is not looked at here: `jobs.core.placement` fits the gang on the clusters that are left.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from fleet.core import fits
from fleet.kube.resources import VOLCANO_POD_GROUPS
from jobs.core.gang.types import Gang
from jobs.core.policies.data_placement import elsewhere
from jobs.core.policies.propagation import Affinity
from jobs.core.reasons import Code
from jobs.core.taints import Taint, untolerated

SCHEDULERS = {"volcano": VOLCANO_POD_GROUPS}
"""What a cluster with the scheduler serves, for each of `asks.ADD_ONS`."""


class Candidate(Protocol):
    """What the filters look at of a cluster."""

    @property
    def name(self) -> str: ...
    @property
    def ready(self) -> bool: ...
    @property
    def cordoned(self) -> bool: ...
    @property
    def synced(self) -> bool: ...
    @property
    def stale(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def places(self) -> Mapping[str, str]: ...
    @property
    def taints(self) -> tuple[Taint, ...]: ...
    @property
    def reserves(self) -> bool: ...
    @property
    def no_reservations(self) -> str: ...
    def serves(self, api_version: str, kind: str) -> bool: ...


def current_refusal(gang: Gang, cluster: Candidate, affinity: Affinity, now: datetime) -> tuple[Code, str] | None:
    """The first filter that says no at this moment, whatever is free."""
    if (barred_by := permanent_refusal(gang, cluster, affinity)) is not None:
        return barred_by
    if (until := gang.excluded.get(cluster.name)) is not None and until > now:
        return Code.FAILED_HERE, f"is excluded until {until:%H:%M:%S} UTC: an attempt failed there"
    return None


def permanent_refusal(gang: Gang, cluster: Candidate, affinity: Affinity) -> tuple[Code, str] | None:
    """The first filter that says no to every gang of this policy and kind with its data on the same clusters.

    The order is that of the explanation: a cluster that the policy does not select is not described any further.
    """
    return _unselected(gang, cluster, affinity) or _unavailable(gang, cluster) or _unsupported(gang, cluster)


def _unselected(gang: Gang, cluster: Candidate, affinity: Affinity) -> tuple[Code, str] | None:
    """Filters on where the policy and the job's data allow it to be."""
    if not affinity.allows(cluster.name, cluster.labels, cluster.places):
        return Code.NOT_SELECTED, "is not selected by the policy's clusterAffinity"
    if (lacking := _lacks_data(gang, cluster)) is not None:
        return Code.DATA_ELSEWHERE, lacking
    return None


def _unavailable(gang: Gang, cluster: Candidate) -> tuple[Code, str] | None:
    """Filters on the state of the cluster, and on whether its capacity is known."""
    tolerations = gang.policy.tolerations if gang.policy else ()
    if cluster.cordoned:
        return Code.CORDONED, "is cordoned"
    if not cluster.ready:
        return Code.NOT_READY, "is not ready"
    if (taint := untolerated(cluster.taints, tolerations)) is not None:
        return Code.UNTOLERATED_TAINT, f"has the taint {taint}, which the policy does not tolerate"
    if not cluster.synced:
        return Code.CAPACITY_UNKNOWN, "has not reported its capacity yet"
    if cluster.stale:
        return Code.CAPACITY_UNKNOWN, f"is {cluster.stale}"
    return None


def _unsupported(gang: Gang, cluster: Candidate) -> tuple[Code, str] | None:
    """Filters on what the cluster serves: the job's kind, reservations, schedulers."""
    if not cluster.serves(gang.api_version, gang.kind):
        return Code.KIND_NOT_SERVED, f"does not serve {gang.api_version} {gang.kind}"
    if cluster.no_reservations and (gang.fit == fits.RESERVATION or (cluster.reserves and not gang.fit)):
        return Code.CANNOT_RESERVE, f"cannot hold reservations: it {cluster.no_reservations}"
    for name in sorted(gang.schedulers):
        resource = SCHEDULERS[name]
        if not cluster.serves(resource.api_version, resource.kind):
            lacks = f"does not serve {resource.api_version} {resource.kind}"
            return Code.SCHEDULER_NOT_SERVED, f"{lacks}, which schedulerName: {name} asks for"
    return None


def _lacks_data(gang: Gang, cluster: Candidate) -> str | None:
    return next((elsewhere(claim, on) for claim, on in gang.bound_to if cluster.name not in on), None)
