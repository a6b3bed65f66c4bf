"""What every verb has at hand: the fleet, the clusters asked about, the screen; and how an object is found among them."""

from __future__ import annotations

from argparse import Namespace as Arguments
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from frontend.cli.amc import discovery, gather, kubeconfig
from frontend.cli.amc.discovery import Resource
from frontend.cli.amc.fleet import Failure, Fleet, Member
from frontend.cli.output import Screen, screen
from frontend.cli.problems import Problem

Object = dict[str, Any]


@dataclass
class Run:
    """One run of a verb."""

    fleet: Fleet
    clusters: list[str]
    namespace: str
    """Empty: all of them."""
    timeout_s: float
    screen: Screen = field(default_factory=screen)

    def gather(self, question: Callable[[Member], Any]) -> gather.Gathered[Any]:
        """Of every cluster asked; one warning line for each that gave no answer."""
        found = gather.ask(self.fleet, self.clusters, question, self.timeout_s)
        for name, problem in found.away.items():
            self.screen.note(f"warning: {_of(name, problem)}", style="yellow")
        return found

    def one(self, resource: str, name: str) -> tuple[Member, Resource, Object]:
        """The one object of that name; which cluster has to be said when several have it."""

        def look(member: Member) -> tuple[Resource, Object]:
            found = discovery.find(member, resource)
            return found, member.get(found.path(self.namespace, name))

        found = self.gather(look)
        if len(found.answers) > 1:
            raise Problem(
                f'"{name}" is in several clusters: {", ".join(found.answers)}', hint="say which with -m CLUSTER"
            )
        for cluster, (served, item) in found.answers.items():
            return self.fleet.member(cluster), served, item
        raise worst(found)


def start(arguments: Arguments) -> Run:
    """What the options every verb takes ask for."""
    connection = kubeconfig.find(arguments.kubeconfig, arguments.context)
    fleet = Fleet(connection, timeout_s=arguments.request_timeout)
    known = fleet.clusters()
    wanted = [name.strip() for each in arguments.member for name in each.split(",") if name.strip()]
    if wanted and arguments.all_members:
        raise Problem("-m and -M exclude each other: name clusters, or ask all of them")
    for name in wanted:
        if name not in known:
            raise Failure(f'clusters.cluster.karmada.io "{name}" not found', code=404, reason="NotFound")
    if not known:
        raise Problem("the fleet has no clusters", hint="join one with `convoy cluster join`")
    namespace = "" if arguments.all_namespaces else arguments.namespace or connection.namespace
    return Run(fleet, list(dict.fromkeys(wanted)) or known, namespace, arguments.request_timeout)


def worst(found: gather.Gathered[Any]) -> Problem:
    """The failure to show when nothing was found: a refusal before an absence, each once."""

    def weight(problem: Problem) -> int:
        code = getattr(problem, "code", 400)
        return 2 if code == 404 else 1 if isinstance(problem, Failure) and problem.away else 0

    return min(found.failures.values(), key=weight)


def _of(cluster: str, problem: Problem) -> str:
    message = problem.message
    return message if message.startswith(f"cluster {cluster}") else f"cluster {cluster}: {message}"
