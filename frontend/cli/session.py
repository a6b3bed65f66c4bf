"""What all commands share: the screen, the API client, and functions that find objects by name."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from frontend.cli import config
from frontend.cli.client import Api, Item, at
from frontend.cli.job_kinds import word_of
from frontend.cli.kinds import JOBS, Kind
from frontend.cli.output import Screen, screen
from frontend.cli.problems import Exit, Problem, missing
from frontend.cli.submit import kinds as trainers

DEFAULT_NAMESPACE = os.environ.get("CONVOY_NAMESPACE", "default")


def _types(incomplete: str) -> list[str]:
    return [trainer.word for trainer in trainers.ALL if trainer.word.startswith(incomplete)]


Type = Annotated[
    str,
    typer.Option("-T", "--type", help="The type of the job as arena has it, such as mpijob.", autocompletion=_types),
]
Namespace = Annotated[str, typer.Option("-n", "--namespace", help="The namespace.", show_default=True)]


@dataclass
class Session:
    """One run of the command line."""

    server: str = ""
    token: str = ""
    screen: Screen = field(default_factory=screen)
    _api: Api | None = None

    @property
    def target(self) -> config.Target:
        return config.resolve(self.server, self.token)

    @property
    def api(self) -> Api:
        if self._api is None:
            self._api = Api(self.target)
        return self._api

    def now(self) -> datetime:
        return datetime.now(UTC)


def session_of(context: typer.Context) -> Session:
    return context.ensure_object(Session)


def select(api: Api, kind: Kind, namespace: str, *, name: str = "", labels: str = "") -> list[Item]:
    """The objects of a kind that match. An empty namespace means all namespaces."""
    params: dict[str, Any] = {"kind": kind.api_kind, "group": kind.api_group, "name": name, "labels": labels}
    if kind.namespaced:
        params["namespace"] = namespace
    items = api.list(kind.path + "/", params)
    return [item for item in items if _matches(item, kind, name, labels)]


def _matches(item: Item, kind: Kind, name: str, labels: str) -> bool:
    """Whether the item passes the filters. Checked here too, because an older server may ignore filters it does not know."""
    item_labels = item.get("labels") or {}
    pairs = [pair.partition("=") for pair in labels.split(",") if pair]
    return (
        (not name or _name(item) == name)
        and (not kind.api_kind or item.get("kind", kind.api_kind) == kind.api_kind)
        and (not kind.api_group or str(item.get("api_version", "")).startswith(f"{kind.api_group}/"))
        and all(item_labels.get(key) == value if sign else key in item_labels for key, sign, value in pairs)
    )


def _name(item: Item) -> str:
    return str(item.get("name", ""))


def job(api: Api, name: str, namespace: str, kind: Kind = JOBS) -> Item:
    """The job of this name. Fails if jobs of several kinds have the name and ``kind`` does not select one."""
    jobs = select(api, kind, namespace, name=name)
    if not jobs:
        hint = f"`convoy get jobs -n {namespace}` lists the jobs"
        raise missing(f"there is no {kind.word} {name!r} in namespace {namespace}", hint)
    if len(jobs) > 1:
        kinds = ", ".join(f"{word_of(api, job)} {name}" for job in jobs)
        raise Problem(f"{name!r} names several jobs", hint=f"say which: {kinds}", exit_code=Exit.USAGE)
    return jobs[0]


def job_path(item: Item, *more: str) -> str:
    return at("jobs", str(item["id"]), *more)


def one(api: Api, kind: Kind, name: str, namespace: str) -> Item:
    """One object of any kind, in the detailed form where the API has one."""
    if kind.path == "jobs":
        return dict(api.get(job_path(job(api, name, namespace, kind))))
    if kind.path == "clusters":
        return dict(api.get(at("clusters", name)))
    items = select(api, kind, namespace, name=name)
    if not items:
        raise missing(f"there is no {kind.word} {name!r}" + (f" in namespace {namespace}" if kind.namespaced else ""))
    return items[0]
