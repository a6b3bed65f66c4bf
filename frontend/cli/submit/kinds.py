"""The kinds of jobs as arena calls them, and the fleet's kinds they are. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from frontend.cli.problems import Problem, usage
from frontend.cli.submit import flags, manifests
from frontend.cli.submit.flags import Flag, Options
from frontend.cli.submit.pods import Manifest


@dataclass(frozen=True, slots=True)
class Trainer:
    """``words`` are what arena calls it; the first one is printed. Without ``build`` its manifest is not written here."""

    words: tuple[str, ...]
    kind: str
    group: str
    plural: str
    title: str
    flags: tuple[Flag, ...] = ()
    build: Callable[[Options, list[str]], Manifest] | None = None

    @property
    def word(self) -> str:
        return self.words[0]

    @property
    def resource(self) -> str:
        """As kubectl prints it."""
        return f"{self.kind.lower()}.{self.group}"


ET = Trainer(
    ("etjob", "et"), "TrainingJob", "kai.alibabacloud.com", "trainingjobs",
    "Submit an elastic training job.", flags.of(flags.ET), manifests.etjob,
)  # fmt: skip
MPI = Trainer(
    ("mpijob", "mpi"), "MPIJob", "kubeflow.org", "mpijobs",
    "Submit an MPI job.", flags.of(flags.MPI), manifests.mpijob,
)  # fmt: skip
PYTORCH = Trainer(
    ("pytorchjob", "pytorch", "py"), "PyTorchJob", "kubeflow.org", "pytorchjobs",
    "Submit a PyTorch job.", flags.of(flags.PYTORCH), manifests.pytorchjob,
)  # fmt: skip
TF = Trainer(
    ("tfjob", "tf"), "TFJob", "kubeflow.org", "tfjobs",
    "Submit a TensorFlow job.", flags.of(flags.TF), manifests.tfjob,
)  # fmt: skip
SUBMITTED = (ET, MPI, PYTORCH, TF)
OTHERS = (
    Trainer(("volcanojob", "volcano", "vj"), "Job", "batch.volcano.sh", "jobs", ""),
    Trainer(("sparkjob", "spark"), "SparkApplication", "sparkoperator.k8s.io", "sparkapplications", ""),
    Trainer(("rayjob", "rj"), "RayJob", "ray.io", "rayjobs", ""),
)
ALL = (*SUBMITTED, *OTHERS)
ABSENT = {
    "deepspeedjob": "use `submit etjob`, whose launcher finds its workers in /job/hostfile",
    "dp": "use `submit etjob`, whose launcher finds its workers in /job/hostfile",
    "horovodjob": "use `submit mpijob`, or `submit etjob` for elastic Horovod",
    "horovod": "use `submit mpijob`, or `submit etjob` for elastic Horovod",
    "hj": "use `submit mpijob`, or `submit etjob` for elastic Horovod",
}
"""Kinds of arena that the fleet has not got, and what to use instead."""


def find(word: str) -> Trainer:
    """The kind that a value of --type names."""
    for trainer in ALL:
        if word.lower() in (*trainer.words, trainer.kind.lower()):
            return trainer
    if word in ABSENT:
        raise usage(f"--type: there are no jobs of type {word!r}", ABSENT[word])
    known = ", ".join(trainer.word for trainer in ALL)
    raise usage(f"--type: {word!r} is no type of job", f"one of: {known}")


def trainer_of(kind: str, group: str) -> str:
    """What the kind of a job is called in tables: ``MPIJOB``. A kind that arena has not got keeps its own name."""
    words = (trainer.word for trainer in ALL if (trainer.kind, trainer.group) == (kind, group))
    return next(words, kind).upper()


def not_submitted(word: str) -> Problem | None:
    """The refusal of a kind that arena submits and this command does not. None for any other word."""
    if word in ABSENT:
        return usage(f"there is no `submit {word}`", ABSENT[word])
    for trainer in OTHERS:
        if word in trainer.words:
            return usage(
                f"there is no `submit {word}`", f"write a manifest of kind {trainer.kind}: `convoy apply -f FILE`"
            )
    return None
