"""``convoy cluster ...`` and ``convoy top``: joins, cordons, drains and detaches members, and shows their capacity."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from frontend.cli import gpu_use, human, kinds, session
from frontend.cli.arena import jobs, reading
from frontend.cli.client import Item, at
from frontend.cli.commands import get, nodes, whatif
from frontend.cli.output import bar
from frontend.cli.problems import Exit, Problem, missing, usage
from frontend.cli.session import DEFAULT_NAMESPACE, Session

PER_MINUTE = "convoy.dev/evictions-per-minute"
"""Label: at what pace jobs leave a cluster."""
NODE_WORDS, JOB_WORDS = ("node", "nodes", "no"), ("job", "jobs")
app = typer.Typer(no_args_is_help=True, help="Member clusters: join, renew, list, cordon, drain, uncordon, detach.")
Name = Annotated[str, typer.Argument(help="The cluster's name in the fleet.")]


def _not_empty(node: str | None) -> str | None:
    """An empty name, such as of a variable that was never set, is refused: the command would act on the whole cluster."""
    if node is not None and not node.strip():
        raise usage("NODE is empty", "give the name of a node, or leave NODE out to mean the whole cluster")
    return node


Node = Annotated[
    str | None, typer.Argument(help="A node of the cluster; left out: the whole cluster.", callback=_not_empty)
]


@app.command()
def join(
    context: typer.Context,
    name: Name,
    kubeconfig: Annotated[str, typer.Option(metavar="FILE|-", help="The kubeconfig of the cluster; - is stdin.")],
    kube_context: Annotated[str, typer.Option("--context", help="The context in the file. Default: current.")] = "",
    label: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label; repeatable.")] = None,
    supervisor: Annotated[
        str, typer.Option(metavar="IMAGE", help="Also install the supervisor of elastic jobs, of this image.")
    ] = "",
) -> None:
    """Add a cluster to the fleet. The server stores its credentials encrypted."""
    run = session.session_of(context)
    body = {"name": name, "kubeconfig": _text(kubeconfig), "context": kube_context, "labels": _labels(label or [])}
    item = run.api.post("clusters/", body)
    run.screen.line(f"cluster/{item['name']} joined ({item['state']}, {item.get('version') or 'version unknown'})")
    for check in item.get("permissions") or []:
        if not check.get("allowed"):
            warning = f"warning: may not {check['verb']} {check['resource']}, needed for {check.get('needed_for', '')}"
            run.screen.note(warning, "yellow")
    if supervisor:
        _supervise(run, name, supervisor)


@app.command()
def supervise(
    context: typer.Context,
    name: Name,
    image: Annotated[str, typer.Option(help="The product's image, as the cluster pulls it.")],
) -> None:
    """Install the supervisor of elastic jobs in a cluster, or bring it up to date; `convoy get addons` shows it."""
    _supervise(session.session_of(context), name, image)


def _supervise(run: Session, name: str, image: str) -> None:
    for addon in run.api.post(at("clusters", name, "addons"), {"image": image}):
        run.screen.line(f"{addon['name']} installed in cluster/{name} ({addon['state']})")


@app.command()
def renew(
    context: typer.Context,
    name: Name,
    kubeconfig: Annotated[str, typer.Option(metavar="FILE|-", help="A new kubeconfig of the cluster; - is stdin.")],
    kube_context: Annotated[str, typer.Option("--context", help="The context in the file. Default: current.")] = "",
) -> None:
    """Replace the credentials of a cluster. Its jobs keep running."""
    run = session.session_of(context)
    run.api.put(at("clusters", name, "credentials"), {"kubeconfig": _text(kubeconfig), "context": kube_context})
    run.screen.line(f"cluster/{name} has new credentials")


@app.command()
def impersonate(
    context: typer.Context,
    name: Name,
    off: Annotated[bool, typer.Option("--off", help="As the fleet's own account again.")] = False,
) -> None:
    """Ask a cluster in the names of persons, so that its own RBAC and audit see them."""
    run = session.session_of(context)
    run.api.put(at("clusters", name, "impersonation"), {"on": not off})
    run.screen.line(f"cluster/{name} is asked {'as the fleet' if off else 'in the names of persons'}")


@app.command()
def tokens(
    context: typer.Context,
    name: Name,
    off: Annotated[bool, typer.Option("--off", help="Use what the cluster was joined with.")] = False,
) -> None:
    """Ask a cluster for tokens that end, and use them in the place of its kubeconfig's credentials."""
    run = session.session_of(context)
    run.api.put(at("clusters", name, "short-lived-tokens"), {"on": not off})
    run.screen.line(f"cluster/{name} {'uses what it was joined with' if off else 'is asked for tokens that end'}")


@app.command()
def reservation(
    context: typer.Context,
    name: Name,
    off: Annotated[bool, typer.Option("--off", help="Fit gangs by the fleet's own view of the nodes instead.")] = False,
) -> None:
    """Have a cluster reserve a gang's capacity before the job is sent (enableReservation)."""
    run = session.session_of(context)
    labels = run.api.get(at("clusters", name))["labels"]
    fit = "NodeFit" if off else "Reservation"
    run.api.patch(at("clusters", name), {"labels": {**labels, kinds.FIT: fit}})
    run.screen.line(f"cluster/{name} {'makes no reservations' if off else 'reserves capacity before jobs are sent'}")


@app.command("list")
def listing(context: typer.Context, output: get.How = get.Output.TABLE, watch: get.Watch = False) -> None:
    """List the member clusters."""
    get.get(context, ["clusters"], output=output, watch=watch)


@app.command()
def cordon(context: typer.Context, name: Name, node: Node = None) -> None:
    """Stop placing jobs on a cluster, or on one node of it. Jobs that run there stay."""
    run = session.session_of(context)
    run.api.post(_path(name, node, "cordon"))
    run.screen.line(f"{_words(name, node)} cordoned")


@app.command()
def drain(
    context: typer.Context,
    name: Name,
    node: Node = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which jobs would move.")] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")] = False,
    per_minute: Annotated[
        int | None,
        typer.Option(min=1, max=10**9, help="Jobs that may leave it within a minute. It stays so for later drains."),
    ] = None,
) -> None:
    """Move all jobs of a cluster, or of one node of it, elsewhere, and place no jobs there until it is uncordoned."""
    run, words = session.session_of(context), _words(name, node)
    change = {"drain_node": {"cluster": name, "node": node}} if node else {"drain_cluster": name}
    whatif.print_differences(run, run.api.post("whatif/", change))
    if dry_run:
        run.screen.line(f"{words} would be drained (dry run)")
        return
    if not yes and sys.stdin.isatty() and not typer.confirm(f"Drain {node or name}?", err=True):
        raise Problem(f"{node or name} was not drained")
    if per_minute:
        labels = run.api.get(at("clusters", name))["labels"]
        run.api.patch(at("clusters", name), {"labels": {**labels, PER_MINUTE: str(per_minute)}})
    run.api.post(_path(name, node, "drain"))
    run.screen.line(f"{words} drained")
    if node:
        run.screen.note("its jobs start anew elsewhere; follow them with `convoy get jobs -A -w`")
        run.screen.note(f"`convoy cluster uncordon {name} {node}` ends the drain")
        return
    run.screen.note("jobs move when the toleration of their policy is over; follow them with `convoy get jobs -A -w`")
    run.screen.note(f"`convoy describe cluster {name}` shows how many are left and how fast they leave")
    run.screen.note(f"`convoy cluster uncordon {name}` ends the drain")


@app.command()
def uncordon(context: typer.Context, name: Name, node: Node = None) -> None:
    """End the cordon and the drain of a cluster, or of one node of it. Jobs that have moved away do not move back."""
    run = session.session_of(context)
    run.api.post(_path(name, node, "uncordon"))
    run.screen.line(f"{_words(name, node)} uncordoned")


def _path(cluster: str, node: str | None, action: str) -> str:
    return at("clusters", cluster, "nodes", node, action) if node else at("clusters", cluster, action)


def _words(cluster: str, node: str | None) -> str:
    return f"node/{node} of cluster/{cluster}" if node else f"cluster/{cluster}"


@app.command()
def exclude(
    context: typer.Context,
    name: Name,
    node: Annotated[str, typer.Argument(help="A node of the cluster.")],
    hours: Annotated[float, typer.Option(help="For how long.")] = 24.0,
    why: Annotated[str, typer.Option(help="The reason, which everybody sees.")] = "",
) -> None:
    """Place no new pods on a node of a cluster for a while. What runs there goes on."""
    run = session.session_of(context)
    run.api.patch(at("clusters", name, "nodes", node), {"exclude": {"hours": hours, "why": why}})
    run.screen.line(f"node/{node} excluded")
    run.screen.note(f"`convoy cluster include {name} {node}` ends that; `convoy get nodes -o wide` shows all that are")


@app.command()
def include(
    context: typer.Context, name: Name, node: Annotated[str, typer.Argument(help="A node of the cluster.")]
) -> None:
    """Place pods on an excluded node of a cluster again."""
    session.session_of(context).api.patch(at("clusters", name, "nodes", node), {"exclude": None})
    session.session_of(context).screen.line(f"node/{node} takes pods again")


@app.command()
def reclaim(
    context: typer.Context,
    name: Name,
    node: Annotated[str, typer.Argument(help="A node of the cluster. Or name a job with --job.")] = "",
    job: Annotated[
        str, typer.Option(help="Instead: the one under this job's last pod; with --back, its last reclaimed.")
    ] = "",
    notice: Annotated[str, typer.Option(help="How long before its pods hear of it, such as 60s.")] = "120s",
    back: Annotated[bool, typer.Option("--back", help="Bring the node back instead.")] = False,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
) -> None:
    """Take a node of a simulated cluster back, as the market of spot nodes does. A real cluster is refused."""
    run = session.session_of(context)
    if bool(node) == bool(job):
        raise usage("name a node, or a job", f"for example: convoy cluster reclaim {name} --job llama --notice=60s")
    node = node or (_reclaimed_under if back else _node_of)(run, job, namespace, name)
    path = f"{at('clusters', name, 'nodes', node)}reclaim/"
    if back:
        run.api.delete(path)
        run.screen.line(f"node/{node} is back")
        return
    try:
        notice_s = human.seconds(notice)
    except ValueError as e:
        raise usage(f"--notice: {notice!r} is not a duration", "for example: --notice=60s") from e
    run.api.post(path, {"notice_s": notice_s})
    run.screen.line(f"node/{node} is reclaimed in {human.duration(notice_s)}")
    run.screen.note(f"`convoy cluster reclaim {name} {node} --back` brings it back")


def _node_of(run: Session, job: str, namespace: str, cluster: str) -> str:
    """The node of the job's last pod in the cluster: the pod that a smaller size would lose first."""
    pods = run.api.list(session.job_path(session.job(run.api, job, namespace), "pods"))
    there = [pod for pod in pods if pod["node"] and pod["cluster"] == cluster and pod["phase"] == "Running"]
    if not there:
        raise missing(f"no pod of {job} runs in cluster {cluster}")
    return str(max(there, key=lambda pod: (pod["attempt"], pod["index"]))["node"])


def _reclaimed_under(run: Session, job: str, namespace: str, cluster: str) -> str:
    """The node of which the job was given notice last."""
    notices = run.api.get(session.job_path(session.job(run.api, job, namespace), "notices"))
    there = [notice for notice in notices if notice["node"] and notice["cluster"] == cluster]
    if not there:
        raise missing(f"no node of cluster {cluster} was reclaimed under {job}")
    return str(max(there, key=lambda notice: notice["at"])["node"])


@app.command()
def detach(
    context: typer.Context,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Detach it even if it has jobs.")] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation; scripts need it.")] = False,
) -> None:
    """Remove a cluster from the fleet."""
    run = session.session_of(context)
    if not yes and not sys.stdin.isatty():
        raise usage(f"{name} was not detached: there is no terminal to ask at", "add --yes where no terminal is")
    if not yes and not typer.confirm(f"Detach {name}?", err=True):
        raise Problem(f"{name} was not detached")
    run.api.delete(at("clusters", name), {"force": "true"} if force else None)
    run.screen.line(f"cluster/{name} detached")


def top(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[node [NAME...]|job [NAME]|idle|team|queue]",
            help="Show nodes, jobs, jobs that leave their GPUs idle, teams or queues instead of clusters.",
        ),
    ] = None,
    resource: Annotated[
        str, typer.Option(help="The resource to show of clusters. Default: GPUs of all kinds.", show_default=False)
    ] = "",
    cluster: Annotated[str, typer.Option(help="The cluster of the nodes. Default: all clusters.")] = "",
    details: Annotated[
        bool, typer.Option("-d", "--details", help="Show the GPUs of each node, and their links.")
    ] = False,
    namespace: session.Namespace = DEFAULT_NAMESPACE,
    everywhere: get.Everywhere = False,
    trainer: session.Type = "",
) -> None:
    """Show the use of all clusters: used, held for gangs that are starting, free. Or the GPUs of nodes or jobs."""
    run = session.session_of(context)
    if words and words[0] in NODE_WORDS:
        nodes.top(run, words[1:], cluster, details=details)
        return
    if words and words[0] in JOB_WORDS and len(words) < 3:
        if words[1:]:
            jobs.print_top_of(run, reading.one(run.api, words[1], namespace, trainer))
        else:
            jobs.print_top(run, "" if everywhere else namespace, trainer)
        return
    if words == ["idle"]:
        gpu_use.print_idle(run)
        return
    if words and words[0] in gpu_use.GROUPS and not words[1:]:
        gpu_use.print_groups(run, words[0])
        return
    if words:
        raise usage(f"cannot show {' '.join(words)!r}", "for example: convoy top node gpu-0 -d, convoy top job")
    items = run.api.list("clusters/")
    if not items:
        run.screen.note("No clusters found.")
        return
    rows = [_usage(item["name"], item["state"], _amounts(item, resource), resource) for item in items]
    if len(items) > 1:
        total = {key: sum(_amounts(item, resource)[key] for item in items) for key in _amounts(items[0], resource)}
        rows.append(_usage("fleet", "", total, resource))
    heading = resource.upper() or "GPUS"
    run.screen.table(["CLUSTER", "STATE", heading, "USED", "HELD", "FREE", "TOTAL"], rows)


def _amounts(item: Item, resource: str) -> dict[str, int]:
    capacity = ((item.get("capacity") or {}).get(resource) if resource else item.get("gpus")) or {}
    return {key: capacity.get(key, 0) for key in ("requested", "held", "free", "allocatable")}


def _usage(name: str, state: str, amounts: dict[str, int], resource: str) -> list[str]:
    drawn = bar(amounts["requested"], amounts["held"], amounts["allocatable"])
    return [name, state, drawn, *(human.amount(resource, value) for value in amounts.values())]


def _text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).expanduser().read_text()
    except OSError as e:
        code = Exit.NOT_FOUND if isinstance(e, FileNotFoundError) else Exit.ERROR
        raise Problem(f"cannot read {path}: {e.strerror}", exit_code=code) from e
    except UnicodeDecodeError as e:
        raise Problem(f"{path} is not UTF-8 text", hint="is it a kubeconfig?") from e


def _labels(labels: list[str]) -> dict[str, str]:
    pairs = [label.partition("=") for label in labels]
    for key, sign, _ in pairs:
        if not key or not sign:
            raise usage(f"{key or '='!r} is not a label", "for example: --label team=vision")
    return {key: value for key, _, value in pairs}
