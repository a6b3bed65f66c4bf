"""The kinds of jobs that Convoy runs. docs/development/kind.md is the recipe for a new one."""

from functools import cache

from jobs.kinds.base import Kind
from jobs.kinds.batchjob import BatchJob
from jobs.kinds.elasticjob import ElasticJob
from jobs.kinds.jaxjob import JAXJob
from jobs.kinds.jobset import JobSet
from jobs.kinds.mpijob import MPIJobV1, MPIJobV2
from jobs.kinds.paddlejob import PaddleJob
from jobs.kinds.pytorchjob import PyTorchJob
from jobs.kinds.rayjob import RayJob
from jobs.kinds.sparkapplication import SparkApplication
from jobs.kinds.tfjob import TFJob
from jobs.kinds.trainingjob import TrainingJob
from jobs.kinds.trainjob import TrainJob
from jobs.kinds.volcanojob import VolcanoJob
from jobs.kinds.xgboostjob import XGBoostJob

_KINDS: tuple[Kind, ...] = (
    PyTorchJob(),
    TFJob(),
    PaddleJob(),
    XGBoostJob(),
    JAXJob(),
    MPIJobV1(),
    MPIJobV2(),
    TrainingJob(),
    TrainJob(),
    ElasticJob(),
    RayJob(),
    JobSet(),
    SparkApplication(),
    VolcanoJob(),
    BatchJob(),
)
"""In the order in which they are asked whose a pod is: a plain Job last, for others make Jobs too."""
_BY_NAME = {(kind.resource.api_version, kind.resource.kind): kind for kind in _KINDS}


def find(api_version: str, kind: str) -> Kind | None:
    return _BY_NAME.get((api_version, kind))


def kind_of(api_version: str, kind: str) -> Kind:
    """The kind of a job that was accepted before; a missing one is a programming error."""
    return _BY_NAME[(api_version, kind)]


def pod_role(labels: dict[str, str]) -> tuple[str, int]:
    """Role and index of a pod, whichever object owns it: some operators let a batch Job make some of their pods."""
    answers = (kind.pod_role(labels) for kind in _KINDS)
    return next((answer for answer in answers if answer[0]), ("", 0))


def group_of(api_version: str) -> str:
    """``batch/`` of ``batch/v1``; empty for the core group."""
    return api_version[: api_version.find("/") + 1]


def spelled(api_version: str, kind: str) -> str:
    """What names made of a kind call it: ``job``, and ``job.batch.volcano.sh`` where another group's kind has that name."""
    return kind.lower() + namesakes().get((group_of(api_version), kind), "")


@cache
def namesakes() -> dict[tuple[str, str], str]:
    """By group and kind what sets a kind apart from another one of its name; the one with the first group needs nothing."""
    kinds = sorted({(kind.resource.kind, kind.resource.group) for kind in _KINDS})
    later = [(group, name) for before, (name, group) in zip(kinds, kinds[1:], strict=False) if before[0] == name]
    return {(f"{group}/", name): f".{group}" for group, name in later}


def everything() -> tuple[Kind, ...]:
    return _KINDS


def names() -> list[str]:
    """``kubeflow.org/v1 PyTorchJob`` and so on, for messages."""
    return [f"{api_version} {kind}" for api_version, kind in sorted(_BY_NAME)]
