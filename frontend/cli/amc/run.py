"""What all verbs share: the fleet, the selected clusters, the screen, and functions that query the clusters."""

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
    """Empty means all namespaces."""
    timeout_s: float
    screen: Screen = field(default_factory=screen)
    _warned: set[str] = field(default_factory=set)

    def gather(self, query: Callable[[Member], Any]) -> gather.Gathered[Any]:
        """Runs the query on every selected cluster. Prints one warning for each cluster that does not answer."""
        gathered = gather.ask(self.fleet, self.clusters, query, self.timeout_s)
        for name, problem in gathered.away.items():
            if name in self._warned:
                continue
            self._warned.add(name)
            self.screen.note(f"warning: {_with_cluster(name, problem)}", style="yellow")
        return gathered

    def one(self, word: str, name: str) -> tuple[Member, Resource, Object]:
        """The object of that name, with its cluster. Fails if several of the selected clusters have it."""

        def query(member: Member) -> tuple[Resource, Object]:
            resource = discovery.find(member, word)
            return resource, member.get(resource.path(self.namespace, name))

        gathered = self.gather(query)
        if len(gathered.answers) > 1:
            raise Problem(
                f'"{name}" is in several clusters: {", ".join(gathered.answers)}', hint="say which with -m CLUSTER"
            )
        for cluster, (resource, item) in gathered.answers.items():
            return self.fleet.member(cluster), resource, item
        raise worst(gathered)


def start(arguments: Arguments) -> Run:
    """Connects to the fleet and selects the clusters, by the options that all verbs have."""
    connection = kubeconfig.find(arguments.kubeconfig, arguments.context)
    fleet = Fleet(connection, timeout_s=arguments.request_timeout)
    known = fleet.clusters()
    wanted = [name.strip() for names in arguments.member for name in names.split(",") if name.strip()]
    if wanted and arguments.all_members:
        raise Problem("-m and -M exclude each other: name clusters, or ask all of them")
    for name in wanted:
        if name not in known:
            raise Failure(f'clusters.cluster.karmada.io "{name}" not found', code=404, reason="NotFound")
    if not known:
        raise Problem("the fleet has no clusters", hint="join one with `convoy cluster join`")
    namespace = "" if arguments.all_namespaces else arguments.namespace or connection.namespace
    return Run(fleet, list(dict.fromkeys(wanted)) or known, namespace, arguments.request_timeout)


def worst(gathered: gather.Gathered[Any]) -> Problem:
    """The failure to show if no cluster had the object: a refusal before a missing answer, and that before "not found"."""

    def weight(problem: Problem) -> int:
        code = getattr(problem, "code", 400)
        return 2 if code == 404 else 1 if isinstance(problem, Failure) and problem.away else 0

    return min(gathered.failures.values(), key=weight)


def _with_cluster(cluster: str, problem: Problem) -> str:
    message = problem.message
    return message if message.startswith(f"cluster {cluster}") else f"cluster {cluster}: {message}"
