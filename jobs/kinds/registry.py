"""The kinds Convoy runs; a new kind is a file beside this one and a line here."""

from jobs.kinds.base import Kind
from jobs.kinds.batchjob import BatchJob
from jobs.kinds.elasticjob import ElasticJob
from jobs.kinds.jobset import JobSet
from jobs.kinds.mpijob import MPIJobV1, MPIJobV2
from jobs.kinds.pytorchjob import PyTorchJob
from jobs.kinds.rayjob import RayJob
from jobs.kinds.sparkapplication import SparkApplication
from jobs.kinds.tfjob import TFJob
from jobs.kinds.trainingjob import TrainingJob
from jobs.kinds.volcanojob import VolcanoJob

_KINDS: tuple[Kind, ...] = (
    PyTorchJob(),
    TFJob(),
    MPIJobV1(),
    MPIJobV2(),
    TrainingJob(),
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


def of(api_version: str, kind: str) -> Kind:
    """The kind of a job that was accepted before; a missing one is a programming error."""
    return _BY_NAME[(api_version, kind)]


def pod_role(labels: dict[str, str]) -> tuple[str, int]:
    """Role and index of a pod, whichever object owns it: some operators let a batch Job make some of their pods."""
    answers = (kind.pod_role(labels) for kind in _KINDS)
    return next((answer for answer in answers if answer[0]), ("", 0))


def everything() -> tuple[Kind, ...]:
    return _KINDS


def names() -> list[str]:
    """``kubeflow.org/v1 PyTorchJob`` and so on, for messages."""
    return [f"{api_version} {kind}" for api_version, kind in sorted(_BY_NAME)]
