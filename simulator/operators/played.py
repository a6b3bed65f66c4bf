"""The kinds of jobs that simulated clusters run: those of all operators."""

from fleet.kube.resources import JOBS, TRAIN_JOBS, Resource
from simulator.operators.kubeflow.kinds import KUBEFLOW_KINDS
from simulator.operators.registry import OPERATORS

PLAYED: frozenset[Resource] = frozenset(
    {
        JOBS,
        TRAIN_JOBS,
        *(kubeflow_kind.resource for kubeflow_kind in KUBEFLOW_KINDS),
        *(operator.resource for operator in OPERATORS),
    }
)
