"""``convoy describe``: prints everything about one object, to be read from top to bottom."""

from datetime import datetime
from typing import Annotated

import typer

from frontend.cli import human, job_kinds, kinds, session
from frontend.cli.client import Item, at
from frontend.cli.kinds import Kind
from frontend.cli.problems import usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

LABEL_WIDTH = 14
EVENTS_SHOWN = 100
LONGEST_VALUE = 80


def describe(
    context: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="[KIND] NAME", help="A job's name, or a kind and a name.")],
    namespace: session.Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Show everything about one object: why it waits, where it runs, its attempts, pods and events."""
    run = session.session_of(context)
    kind, name = kind_and_name(run, words)
    if kind is kinds.PODS or kind is kinds.EVENTS:
        raise usage(
            f"{kind.words[1]} cannot be described", f"`convoy get {kind.words[1]} -o yaml` shows all their fields"
        )
    item = session.one(run.api, kind, name, namespace)
    if kind.path == "jobs":
        _job(run, item)
    elif kind is kinds.CLUSTERS:
        _cluster(run, item)
    else:
        run.screen.yaml(item)


def kind_and_name(run: Session, words: list[str]) -> tuple[Kind, str]:
    """Reads ``NAME``, ``KIND NAME`` or ``KIND/NAME``. Without a kind, the name is that of a job."""
    parts = words[0].split("/", 1) if len(words) == 1 else words
    if len(parts) == 1:
        return kinds.JOBS, parts[0]
    if len(parts) != 2 or not parts[1]:
        raise usage("give one name, or a kind and a name", "for example: convoy describe pytorchjob llama")
    return job_kinds.find(run.api, parts[0]), parts[1]


def _pair(run: Session, label: str, value: object) -> None:
    run.screen.line(f"{label + ':':<{LABEL_WIDTH}} {value if value not in (None, '') else human.NONE}")


def _job(run: Session, item: Item) -> None:
    now = run.now()
    _pair(run, "Name", item["name"])
    _pair(run, "Namespace", item["namespace"])
    _pair(run, "Kind", f"{item['kind']} ({item['api_version']})")
    _pair(run, "UID", item["id"])
    _pair(run, "Labels", human.pairs(item.get("labels") or {}))
    _pair(run, "Created", human.stamp(item.get("created_at")))
    _pair(run, "State", "Deleting" if item.get("deleting_at") else item["state"])
    _pair(run, "Suspended", "yes" if item.get("suspended") else "no")
    _pair(run, "Cluster", item.get("cluster"))
    _pair(run, "Policy", kinds.policy_name(item))
    _pair(run, "Priority", item.get("priority", 0))
    _pair(run, "Asks for", human.amounts(item.get("total") or {}))
    _pair(run, "Duration", human.between(item.get("started_at"), item.get("finished_at"), now))
    binding = item.get("binding") or {}
    _pair(run, "Binding", binding.get("result"))
    for copy in item.get("other_copies") or []:
        _pair(run, "Two copies", copy["message"])
    _reason(run, item.get("reason"))
    _sizes(run, item)
    _roles(run, item)
    _attempts(run, item)
    _preserved(run, item.get("preserved_state") or [])
    _pods(run, item)
    events = run.api.list(session.job_path(item, "events"))
    _events(run, events)


def _sizes(run: Session, item: Item) -> None:
    """The size of each role that can be resized while the job runs, and the growth that waits."""
    for role, size in (item.get("size") or {}).items():
        most = "no max" if size["max"] is None else f"max {size['max']}"
        _pair(run, "Size", f"{role} {size['replicas']} (min {size['min']}, {most})")
    growth = item.get("resize") or {}
    for role, wanted in (growth.get("sizes") or {}).items():
        why = (growth.get("reason") or {}).get("message", "waits for the scheduler")
        _pair(run, "Grows to", f"{role} {wanted}: {why}")


def _reason(run: Session, reason: Item | None) -> None:
    if not reason:
        return
    _pair(run, "Reason", reason["code"])
    _pair(run, "Message", reason["message"])
    clusters = reason.get("clusters") or []
    if clusters:
        run.screen.line("Clusters:")
        rows = [
            [each["cluster"], each["code"], human.amounts(each.get("missing") or {}), each["message"]]
            for each in clusters
        ]
        run.screen.table(["NAME", "CODE", "SHORT OF", "MESSAGE"], rows, indent=2)


def _roles(run: Session, item: Item) -> None:
    run.screen.line("Roles:")
    rows = [
        [role["name"], str(role["replicas"]), human.amounts(role.get("request") or {})]
        for role in item.get("roles") or []
    ]
    run.screen.table(["NAME", "REPLICAS", "EACH ASKS FOR"], rows, indent=2)


def _attempts(run: Session, item: Item) -> None:
    now = run.now()
    attempts = run.api.list(session.job_path(item, "attempts"))
    if not attempts:
        return
    run.screen.line("Attempts:")
    rows = [
        [
            str(each["number"]),
            each["cluster"] or human.NONE,
            human.age(each.get("placed_at"), now),
            human.between(each.get("started_at"), each.get("ended_at"), now) or human.NONE,
            each.get("outcome") or "current",
            each.get("cause") or human.NONE,
            each.get("message") or "",
        ]
        for each in attempts
    ]
    run.screen.table(["NUMBER", "CLUSTER", "PLACED", "RAN FOR", "OUTCOME", "CAUSE", "MESSAGE"], rows, indent=2)
    _diagnosis(run, attempts)


def _diagnosis(run: Session, attempts: list[Item]) -> None:
    """What the failing process of the latest failed attempt said, with the end of its log."""
    failed = [each for each in attempts if each.get("diagnosis")]
    if not failed:
        return
    latest = max(failed, key=lambda each: int(each["number"]))
    run.screen.line(f"Failure of attempt {latest['number']}:")
    run.screen.line(f"  {latest['diagnosis']['summary']}")
    for line in latest["diagnosis"].get("excerpt") or []:
        run.screen.line(f"  | {line}")


def _preserved(run: Session, values: list[Item]) -> None:
    """What the next attempt gets of the state of earlier ones."""
    if values:
        run.screen.line("Preserved state:")
        rows = [
            [each["name"], str(each["attempt"] or human.NONE), _cut(each["value"]) or human.NONE, each["problem"]]
            for each in values
        ]
        run.screen.table(["NAME", "OF ATTEMPT", "VALUE", "PROBLEM"], rows, indent=2)


def _cut(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= LONGEST_VALUE else f"{line[: LONGEST_VALUE - 1]}…"


def _pods(run: Session, item: Item) -> None:
    if not item.get("attempt"):
        return
    pods = run.api.list(session.job_path(item, "pods"))
    if pods:
        now = run.now()
        run.screen.line("Pods:")
        silent = {str(pod["cluster"]): pod["stale_since"] for pod in pods if pod.get("stale_since")}
        for cluster, since in sorted(silent.items()):
            run.screen.line(f"  {cluster} does not answer: its pods are shown as they were {human.age(since, now)} ago")
        rows = [kinds.PODS.row(pod, now, wide=False, namespace=False) for pod in pods]
        run.screen.table(list(kinds.PODS.columns), rows, indent=2)
        _pod_messages(run, pods)


def _pod_messages(run: Session, pods: list[Item]) -> None:
    """Why pods are not what they should be; what many say is said once."""
    said: dict[str, list[str]] = {}
    for pod in pods:
        if pod.get("message"):
            said.setdefault(f"{pod['reason']}: {' '.join(pod['message'].split())}", []).append(pod["name"])
    for message, names in said.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        run.screen.line(f"  {names[0]}{more}: {message}")


def _cluster(run: Session, item: Item) -> None:
    now = run.now()
    _pair(run, "Name", item["name"])
    _pair(run, "State", item["state"])
    _pair(run, "Reason", item.get("reason"))
    _pair(run, "Message", item.get("message"))
    _pair(run, "Cordoned", "yes" if item.get("cordoned") else "no")
    _pair(run, "Drained", "yes" if item.get("drained") else "no")
    if item.get("taints"):
        _evictions(run, run.api.get(at("clusters", item["name"], "evictions")))
    _pair(run, "Impersonation", "yes" if item.get("impersonation") else "no")
    credentials = item.get("credentials") or {}
    _pair(run, "Credentials", f"{credentials.get('reason')}: {credentials.get('message')}" if credentials else "")
    agent = item.get("agent") or {}
    _pair(run, "Agent", f"{agent.get('reason')}: {agent.get('message')}" if agent else "")
    _pair(run, "Version", item.get("version"))
    _pair(run, "Region", item.get("region"))
    _pair(run, "Zone", item.get("zone"))
    _pair(run, "Labels", human.pairs(item.get("labels") or {}))
    _pair(run, "Taints", ", ".join(_taint(each) for each in item.get("taints") or []))
    _pair(run, "Nodes", f"{item['nodes']['ready']} of {item['nodes']['total']} ready")
    _pair(run, "Last answer", f"{human.age(item.get('last_heartbeat'), now)} ago")
    columns = ("allocatable", "requested", "held", "free")
    rows = [
        [name, *(human.amount(name, amounts.get(column, 0)) for column in columns)]
        for name, amounts in sorted((item.get("capacity") or {}).items())
    ]
    run.screen.line("Capacity:")
    run.screen.table(["RESOURCE", *(column.upper() for column in columns)], rows, indent=2)
    _denied(run, item)


def _evictions(run: Session, progress: Item) -> None:
    """How many jobs have not left a cluster that they have to leave."""
    _pair(run, "Jobs left", progress["jobs_left"])
    _pair(run, "Copies left", progress["copies_left"])
    pace = f"{progress['left_last_minute']} in the last minute, at most {progress['per_minute']} a minute"
    if progress["jobs_left"]:
        pace += f", at least {progress['minutes_left']} min to go"
    _pair(run, "Leaving", pace)


def _denied(run: Session, item: Item) -> None:
    denied = [each for each in item.get("permissions") or [] if not each.get("allowed")]
    if denied:
        run.screen.line("Missing permissions:")
        rows = [[each["verb"], each["resource"], each.get("needed_for", "")] for each in denied]
        run.screen.table(["VERB", "RESOURCE", "NEEDED FOR"], rows, indent=2)


def _taint(taint: Item) -> str:
    value = taint.get("value")
    return f"{taint['key']}{'=' + value if value else ''}:{taint['effect']}"


def _events(run: Session, events: list[Item]) -> None:
    """Prints the events, oldest first."""
    run.screen.line("Events:")
    if not events:
        run.screen.line(f"  {human.NONE}")
        return
    now = run.now()
    rows = [
        [each["type"], each["reason"], _seen(each, now), each["source"], each["message"]]
        for each in sorted(events, key=lambda each: str(each["last_at"]))[-EVENTS_SHOWN:]
    ]
    run.screen.table(["Type", "Reason", "Age", "From", "Message"], rows, indent=2)


def _seen(event: Item, now: datetime) -> str:
    last = human.age(event["last_at"], now)
    count = event.get("count", 1)
    return last if count == 1 else f"{last} (x{count} over {human.age(event['first_at'], now)})"
