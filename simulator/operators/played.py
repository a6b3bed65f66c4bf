"""The kinds that simulated clusters run: what each of the operators says it is for."""

from fleet.kube.resources import JOBS, TRAIN_JOBS, Resource
from simulator.operators.kubeflow.kinds import FAMILIES
from simulator.operators.registry import TRADES

PLAYED: frozenset[Resource] = frozenset(
    {JOBS, TRAIN_JOBS, *(family.resource for family in FAMILIES), *(trade.resource for trade in TRADES)}
)
