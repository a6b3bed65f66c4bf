"""The kinds that simulated clusters run: what each of the operators says it is for."""

from fleet.kube.resources import JOBS, Resource
from simulator.operators.kubeflow.kinds import FAMILIES
from simulator.operators.registry import TRADES

PLAYED: frozenset[Resource] = frozenset(
    {JOBS, *(family.resource for family in FAMILIES), *(t.resource for t in TRADES)}
)
