"""The flags of ``convoy submit``: their names and meanings as arena has them, and which kinds of jobs have them.

A flag that the fleet cannot honour is listed too, with what to do instead: it is refused by name, never accepted and ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Options = Mapping[str, Any]
"""The values of the flags of one command line, by `Flag.key`."""
MANIFEST = "print the manifest with --dry-run, complete it there, and submit it with `convoy apply -f FILE`"


@dataclass(frozen=True, slots=True)
class Flag:
    """``kind`` is the type of its values: str, int, bool, or list for a flag that may be repeated."""

    names: tuple[str, ...]
    kind: type
    default: Any
    help: str
    metavar: str = ""
    least: int = 0
    choices: tuple[str, ...] = ()
    instead: str = ""
    """What to do instead, for a flag that is refused."""

    @property
    def long(self) -> str:
        return self.names[0]

    @property
    def key(self) -> str:
        return self.long.lstrip("-").replace("-", "_")


def _text(names: str, help: str, default: str = "", *, metavar: str = "TEXT", choices: Sequence[str] = ()) -> Flag:
    return Flag(tuple(names.split()), str, default, help, metavar, choices=tuple(choices))


def _count(names: str, help: str, default: int | None = None, *, least: int = 0) -> Flag:
    return Flag(tuple(names.split()), int, default, help, "N", least)


def _switch(names: str, help: str) -> Flag:
    return Flag(tuple(names.split()), bool, False, help)


def _list(names: str, help: str, metavar: str) -> Flag:
    return Flag(tuple(names.split()), list, (), help + " Repeatable.", metavar)


def _refused(names: str, instead: str) -> Flag:
    return Flag(tuple(names.split()), str, None, "Refused by Convoy.", instead=instead)


CLEAN = ("Running", "All", "None")
RESTARTS = ("Never", "OnFailure", "Always", "ExitCode")
COMMON = (
    _text("--name", "The name of the job. Required."),
    _text("--image", "The image of its containers. Required.", metavar="IMAGE"),
    _text("--namespace -n", "The namespace.", metavar="NAMESPACE"),
    _count("--workers", "The number of workers.", 1, least=1),
    _count("--gpus", "The GPUs of each worker.", 0),
    _list("--device", "Other devices of each worker, such as amd.com/gpu=1.", "RESOURCE=N"),
    _list("--env -e", "An environment variable.", "NAME=VALUE"),
    _list("--data -d", "A PersistentVolumeClaim and where it is mounted.", "CLAIM:PATH"),
    _list("--data-dir --dataDir", "A directory of the nodes and where it is mounted.", "DIR[:PATH]"),
    _list("--annotation -a", "An annotation of the job and its pods.", "KEY=VALUE"),
    _list("--label -l", "A label of the job and its pods.", "KEY=VALUE"),
    _list("--selector", "A label of the nodes that may run it.", "KEY=VALUE"),
    _list("--toleration", "A taint that it tolerates: all, KEY, or KEY=VALUE:EFFECT,OPERATOR.", "TAINT"),
    _switch("--gang", "Start all pods together or none. Convoy does so for every job, with this flag or without."),
    _switch("--queue", "Wait in the queue of its namespace. Convoy does so for every job, with this flag or without."),
    _text("--priority -p", "The name of its PriorityClass."),
    _text("--scheduler", "The scheduler of its pods in the member."),
    _text("--working-dir --workingDir", "The working directory; --sync-mode puts the code into its subdirectory code.",
          metavar="PATH"),
    _text("--shell", "The shell that runs the command.", "sh", choices=("sh", "bash")),
    _list("--image-pull-secret", "A Secret to pull the image with.", "SECRET"),
    _text("--image-pull-policy", "When the image is pulled.", choices=("Always", "IfNotPresent", "Never")),
    _switch("--rdma", "One RDMA device for each worker (rdma/hca)."),
    _switch("--hostNetwork", "Use the network of the node."),
    _switch("--hostIPC", "Use the IPC namespace of the node."),
    _switch("--hostPID", "Use the PID namespace of the node."),
    _text("--sync-mode --syncMode", "Fetch the code before the job starts.", choices=("git", "rsync")),
    _text("--sync-source --syncSource", "The repository or rsync address of the code.", metavar="URL"),
    _text("--sync-image --syncImage", "The image that fetches the code: git-sync, or one with rsync.", metavar="IMAGE"),
    _switch("--dry-run", "Print the manifest and submit nothing."),
    _text("--loglevel", "What it prints of its own work.", "info", choices=("debug", "info", "warn", "error")),
    _refused("--config-file", "create a ConfigMap with `convoy apply -f FILE`; then " + MANIFEST),
    _refused("--tensorboard", "run TensorBoard as a deployment of the member, on the claim that --data mounts"),
    _refused("--tensorboard-image", "run TensorBoard as a deployment of the member, on the claim that --data mounts"),
    _refused("--logdir", "write the logs to a claim that --data mounts"),
    _refused("--model-name", "register the model from the training script"),
    _refused("--model-source", "register the model from the training script"),
    _refused("--config", "sign in with `convoy login`: Convoy needs no kubeconfig"),
    _refused("--arena-namespace", "leave it out: the fleet has no namespace of arena"),
)  # fmt: skip
RESOURCES = (
    _text("--cpu", "The cores of each worker.", metavar="CORES"),
    _text("--memory", "The memory of each worker, such as 16Gi.", metavar="BYTES"),
)
RUN = (
    _text("--clean-task-policy --cleanTaskPolicy", "Which pods to remove when the job ends.", "Running", choices=CLEAN),
    _count("--retry", "How often the job may fail before that is final."),
)
TIMES = (
    _text("--running-timeout", "How long the job may run, such as 2h22m.", metavar="DURATION"),
    _text("--ttl-after-finished", "When the ended job is removed from the member.", metavar="DURATION"),
    _text("--share-memory", "The shared memory of each pod.", "2Gi", metavar="BYTES"),
)
ET = (
    *RESOURCES,
    _count("--min-workers", "The fewest workers that can train.", 1, least=1),
    _count("--max-workers", "The most workers that can train.", 1000, least=1),
    _switch(
        "--spot-instance", "Train on spot instances, and be notified before they go by the elastic-job-supervisor."
    ),
    _count("--max-wait-time", "Seconds to wait for quota and room at a stretch; the job then ends. 0: for ever.", 0),
    _text("--job-restart-policy", "Whether the whole job is restarted.", choices=("Never", "OnFailure")),
    _count("--job-backoff-limit", "How often the whole job is restarted.", 6),
    _text("--worker-restart-policy", "When a worker is replaced.", choices=RESTARTS),
    _list("--launcher-selector", "A label of the nodes that may run the launcher.", "KEY=VALUE"),
    _list("--launcher-annotation", "An annotation of the launcher's pod.", "KEY=VALUE"),
    _list("--worker-annotation", "An annotation of the workers' pods.", "KEY=VALUE"),
    _text("--ssh-secret", "A Secret with the SSH key of its pods, instead of a new one.", metavar="SECRET"),
    _refused("--retry", "use --job-restart-policy=OnFailure and --job-backoff-limit"),
    _refused("--clean-task-policy", MANIFEST),
)
MPI = (
    *RESOURCES,
    *RUN,
    _switch("--gputopology", "Choose the GPUs by their links, on nodes labelled ack.node.gpu.schedule=topology."),
    _switch("--mounts-on-launcher", "Mount --data and --data-dir in the launcher too."),
    _refused("--share-memory", MANIFEST),
)
PYTORCH = (
    *RESOURCES,
    *RUN,
    *TIMES,
    _text("--nproc-per-node", "The processes of each pod: auto, cpu, gpu or a number."),
)


def _role(role: str, title: str) -> tuple[Flag, ...]:
    return (
        _text(f"--{role}-cpu --{role}Cpu", f"The cores of {title}.", metavar="CORES"),
        _text(f"--{role}-cpu-limit", f"The limit of the cores of {title}.", metavar="CORES"),
        _text(f"--{role}-memory --{role}Memory", f"The memory of {title}.", metavar="BYTES"),
        _text(f"--{role}-memory-limit", f"The limit of the memory of {title}.", metavar="BYTES"),
        _list(f"--{role}-selector", f"A label of the nodes that may run {title}, instead of --selector.", "KEY=VALUE"),
        _refused(f"--{role}-port", "leave it out: every replica has an address of its own with port 2222"),
    )


TF = (
    *RUN,
    *TIMES,
    _text("--worker-image --workerImage", "The image of workers, chief and evaluator.", metavar="IMAGE"),
    _count("--ps", "The number of parameter servers.", 0),
    _text("--ps-image --psImage", "The image of the parameter servers.", metavar="IMAGE"),
    _count("--ps-gpus", "The GPUs of each parameter server.", 0),
    _switch("--chief", "A chief beside the workers."),
    _switch("--evaluator", "An evaluator beside the workers."),
    *_role("worker", "each worker"),
    *_role("ps", "each parameter server"),
    *_role("chief", "the chief"),
    *_role("evaluator", "the evaluator"),
    _text("--success-policy", "Which workers decide about success.", "ChiefWorker",
          choices=("ChiefWorker", "AllWorkers")),
    _refused("--role-sequence", "leave it out: all roles of a job start together"),
    _refused("--starting-timeout", "leave it out: a job that waits holds no GPU; `convoy explain JOB` shows why it waits"),
    _refused("--cpu", "use --worker-cpu, --ps-cpu, --chief-cpu"),
    _refused("--memory", "use --worker-memory, --ps-memory, --chief-memory"),
)  # fmt: skip
ELSEWHERE = {
    "--gputopology": "only MPI jobs have it: use `submit mpijob`, or ask for aliyun.com/gpu with --device",
    "--spot-instance": "only elastic jobs have it: use `submit etjob`",
    "--min-workers": "only elastic jobs have it: use `submit etjob`",
    "--max-workers": "only elastic jobs have it: use `submit etjob`",
    "--max-wait-time": "only elastic jobs have it: use `submit etjob`",
    "--ps": "only TensorFlow jobs have it: use `submit tfjob`",
    "--nproc-per-node": "only PyTorch jobs have it: use `submit pytorchjob`",
}
"""Flags of other kinds, for a kind that has not got them."""


def of(own: Sequence[Flag]) -> tuple[Flag, ...]:
    """The flags of a kind of job: its own, the common ones, and refusals of flags that only other kinds have."""
    known = {name for flag in (*own, *COMMON) for name in flag.names}
    missing = (_refused(name, instead) for name, instead in ELSEWHERE.items() if name not in known)
    return (*COMMON, *own, *missing)
