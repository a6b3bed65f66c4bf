"""``list``, ``get JOB``, ``top job``, ``delete`` and ``prune``, as arena prints them."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

from frontend.cli import gpu_use, human, session
from frontend.cli.arena import reading, views
from frontend.cli.arena.reading import Training
from frontend.cli.arena.views import NONE, Instance
from frontend.cli.client import Api, at
from frontend.cli.problems import usage
from frontend.cli.session import Session
from frontend.cli.submit import kinds, manifests

EVENTS_SHOWN = 100


class Form(StrEnum):
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def print_list(run: Session, namespace: str, word: str, form: Form | None) -> None:
    trainings = reading.many(run.api, namespace, word)
    if form in (Form.JSON, Form.YAML):
        _document(run, [training.item for training in trainings], form)
        return
    if form is Form.NAME:
        for training in trainings:
            run.screen.line(str(training.item["name"]))
        return
    headers = ["NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE"]
    rows = [_listed(training, run) for training in trainings]
    if form is Form.WIDE:
        headers += ["CLUSTER", "QUEUE"]
        rows = [[*row, *_places(training)] for row, training in zip(rows, trainings, strict=True)]
    if not namespace:
        headers = ["NAMESPACE", *headers]
        rows = [[str(each.item["namespace"]), *row] for each, row in zip(trainings, rows, strict=True)]
    _lines(run, views.columns([headers, *rows]))


def _listed(training: Training, run: Session) -> list[str]:
    item = training.item
    cells = [str(item["name"]), training.status, views.trainer(item), views.lasted(item, run.now())]
    return [*cells, str(training.gpus), training.allocated, views.chief_node(training.pods)]


def _places(training: Training) -> list[str]:
    return [str(training.item.get("cluster") or NONE), str(training.item.get("leaf") or NONE)]


def print_job(run: Session, training: Training, form: Form | None, *, events: bool, devices: bool) -> None:
    """The page of one job: its state, and its pods."""
    if form in (Form.JSON, Form.YAML):
        _document(run, training.item, form)
        return
    if form is Form.NAME:
        run.screen.line(str(training.item["name"]))
        return
    headers = ["NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE"]
    rows = [[*_instance(pod, run), pod.node or NONE] for pod in training.pods]
    if form is Form.WIDE:
        headers += ["CLUSTER"]
        rows = [[*row, pod.cluster] for row, pod in zip(rows, training.pods, strict=True)]
    _lines(run, [*_head(training, run), "", "Instances:", *views.ruled(headers, rows)])
    if devices:
        _print_devices(run, training)
    if events:
        _print_events(run, training)


def _instance(pod: Instance, run: Session) -> list[str]:
    return [pod.name, pod.status, views.age(pod.created_at, run.now()), str(pod.chief).lower(), str(pod.gpus)]


def _head(training: Training, run: Session) -> list[str]:
    item = training.item
    facts = {
        "Name": item["name"],
        "Status": training.status,
        "Namespace": item["namespace"],
        "Priority": item.get("priority") or NONE,
        "Trainer": views.trainer(item),
        "Duration": views.lasted(item, run.now()),
    }
    return [f"{label + ':':<10} {value}" for label, value in facts.items()]


def _print_devices(run: Session, training: Training) -> None:
    indices = device_indices(run.api, training)
    headers = ["INSTANCE", "NODE(IP)", "GPU(Requested)", "GPU(IndexId)", "GPU(DutyCycle)", "GPU Memory(Used/Total)"]
    rows = [
        [pod.name, pod.node or NONE, str(pod.gpus), indices.get(pod.name, NONE), NONE, NONE]
        for pod in training.pods
        if pod.gpus
    ]
    summary = f"  Allocated/Requested GPUs of Job: {views.allocated(training.pods)}/{training.gpus}"
    _lines(run, ["", "GPUs:", *views.ruled(headers, rows), "", summary])


def device_indices(api: Api, training: Training) -> dict[str, str]:
    """The GPUs of each pod by its name. Only nodes that assign GPUs by their links report them."""
    places = {(pod.cluster, pod.node) for pod in training.pods if pod.gpus and pod.node}
    taken: dict[str, list[str]] = {}
    for cluster, node in sorted(places):
        for gpu in api.get(at("gpus", cluster, node))["gpus"]:
            if gpu["namespace"] == training.item["namespace"] and gpu["pod"]:
                taken.setdefault(gpu["pod"], []).append(str(gpu["index"]))
    return {pod: ",".join(indices) for pod, indices in taken.items()}


def _print_events(run: Session, training: Training) -> None:
    events = run.api.list(session.job_path(training.item, "events"))
    events = sorted(events, key=lambda event: str(event["last_at"]))[-EVENTS_SHOWN:]
    source = f"{training.item['kind'].lower()}/{training.item['name']}"
    rows = [
        [
            source,
            str(event["type"]),
            views.age(event.get("last_at"), run.now()),
            f"[{event['reason']}] {event['message']}",
        ]
        for event in events
    ]
    _lines(run, ["", "Events:", *views.ruled(["SOURCE", "TYPE", "AGE", "MESSAGE"], rows)])


def print_top(run: Session, namespace: str, word: str) -> None:
    """The jobs by the GPUs that they request."""
    trainings = [each for each in reading.many(run.api, namespace, word) if each.status not in views.ENDED]
    trainings.sort(key=lambda training: -training.gpus)
    headers = ["NAME", "STATUS", "TRAINER", "AGE", "GPU(Requested)", "GPU(Allocated)", "NODE"]
    rows = [_top(training, run) for training in trainings]
    if uses := gpu_use.by_job(run.api):
        headers.append("GPU(Util)")
        rows = [[*row, uses.get(str(each.item["id"]), gpu_use.NONE)] for each, row in zip(trainings, rows, strict=True)]
    if not namespace:
        headers = ["NAMESPACE", *headers]
        rows = [[str(each.item["namespace"]), *row] for each, row in zip(trainings, rows, strict=True)]
    running = [training for training in trainings if training.status == "RUNNING"]
    total = f"{sum(int(each.allocated) for each in running)}/{sum(each.gpus for each in running)}"
    _lines(run, [*views.columns([headers, *rows]), "", f"Total Allocated/Requested GPUs of Training Jobs: {total}"])


def _top(training: Training, run: Session) -> list[str]:
    row = _listed(training, run)
    row[3] = views.age(training.item.get("created_at"), run.now())
    return row


def print_top_of(run: Session, training: Training) -> None:
    """The GPUs of one job, pod by pod."""
    indices = device_indices(run.api, training)
    gpus = gpu_use.read(run.api, session.job_path(training.item, "gpu-usage"), "gpus")
    headers = ["NAME", "STATUS", "GPU(Request)", "NODE", "GPU(DeviceIndex)", "GPU(DutyCycle)", "GPU_MEMORY(Used/Total)"]
    rows = []
    for pod in training.pods:
        own = [gpu for gpu in gpus if gpu["pod"] == pod.name]
        numbers = indices.get(pod.name) or ",".join(gpu["gpu"] for gpu in own) or NONE
        use = [gpu_use.mean(own), gpu_use.memory(own)] if own else [NONE, NONE]
        rows.append([pod.name, pod.status, str(pod.gpus), pod.node or NONE, numbers, *use])
    _lines(run, [*_head(training, run), "", "Instances:", *views.ruled(headers, rows)])


def delete(run: Session, names: Sequence[str], namespace: str, word: str) -> None:
    """Deletes jobs. All names are looked up before the first job is deleted."""
    for item in [session.job(run.api, name, namespace, reading.kind_of(word)) for name in names]:
        delete_job(run.api, item)
        run.screen.line(f"The training job {item['name']} has been deleted successfully")


def delete_job(api: Api, item: dict[str, Any]) -> None:
    """Deletes a job, and the Secret that was made for it."""
    secrets = own_secrets(api, item)
    api.delete(session.job_path(item))
    for secret in secrets:
        api.delete(at("dependents", secret))


def own_secrets(api: Api, item: dict[str, Any]) -> list[str]:
    """The ids of the Secrets that `submit etjob` made for this job alone."""
    if item.get("kind") != kinds.ET.kind:
        return []
    manifest = api.get(session.job_path(item)).get("manifest") or {}
    annotations = (manifest.get("metadata") or {}).get("annotations") or {}
    if annotations.get(manifests.OWN_KEY) != item["name"]:
        return []
    params = {"kind": "Secret", "namespace": item["namespace"], "name": item["name"]}
    return [
        str(secret["id"])
        for secret in api.list("dependents/", params)
        if (secret.get("kind"), secret.get("namespace"), secret.get("name")) == tuple(params.values())
    ]


def prune(run: Session, namespace: str, since: str) -> None:
    """Deletes jobs that have ended and were created longer ago than ``since``."""
    try:
        limit = human.seconds(since)
    except ValueError as e:
        raise usage(f"--since: {since!r} is not a duration", "for example: --since=10h") from e
    if limit <= 0:
        raise usage(f"--since: {since!r} would delete every job that has ended", "for example: --since=10h")
    now = run.now()
    pruned = [item for item in _ended(run.api, namespace) if _created(item, now) > limit]
    for item in pruned:
        run.screen.line(
            f"Delete {views.trainer(item).lower()} {item['name']} with Age {views.age(item['created_at'], now)}"
        )
        delete_job(run.api, item)
    if not pruned:
        run.screen.line("No job need to be deleted")


def _ended(api: Api, namespace: str) -> Iterator[dict[str, Any]]:
    jobs = session.select(api, reading.kind_of(""), namespace)
    return (item for item in jobs if item.get("state") in ("Succeeded", "Failed") and not item.get("deleting_at"))


def _created(item: dict[str, Any], now: Any) -> float:
    created = human.moment(item.get("created_at"))
    return 0.0 if created is None else float((now - created).total_seconds())


def _document(run: Session, value: object, form: Form) -> None:
    if form is Form.JSON:
        run.screen.json(value)
    else:
        run.screen.yaml(value)


def _lines(run: Session, lines: Sequence[str]) -> None:
    for line in lines:
        run.screen.line(line)
