"""What every command has at hand: the screen, the server, and how an object is found by its name."""

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

DEFAULT_NAMESPACE = os.environ.get("CONVOY_NAMESPACE", "default")
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
    """Objects of a kind; an empty namespace means all of them."""
    wanted: dict[str, Any] = {"kind": kind.api_kind, "group": kind.api_group, "name": name, "labels": labels}
    if kind.namespaced:
        wanted["namespace"] = namespace
    found = api.list(kind.path + "/", wanted)
    return [each for each in found if _matches(each, kind, name, labels)]


def _matches(item: Item, kind: Kind, name: str, labels: str) -> bool:
    """What a server that does not know the filter left in."""
    mine = item.get("labels") or {}
    pairs = [pair.partition("=") for pair in labels.split(",") if pair]
    return (
        (not name or _name(item) == name)
        and (not kind.api_kind or item.get("kind", kind.api_kind) == kind.api_kind)
        and (not kind.api_group or str(item.get("api_version", "")).startswith(f"{kind.api_group}/"))
        and all(mine.get(key) == value if sign else key in mine for key, sign, value in pairs)
    )


def _name(item: Item) -> str:
    return str(item.get("name", ""))


def job(api: Api, name: str, namespace: str, kind: Kind = JOBS) -> Item:
    """The one job of this name; two kinds may share a name, then the kind has to be said."""
    found = select(api, kind, namespace, name=name)
    if not found:
        hint = f"`convoy get jobs -n {namespace}` lists what there is"
        raise missing(f"there is no {kind.word} {name!r} in namespace {namespace}", hint)
    if len(found) > 1:
        kinds = ", ".join(f"{word_of(api, each)} {name}" for each in found)
        raise Problem(f"{name!r} names several jobs", hint=f"say which: {kinds}", exit_code=Exit.USAGE)
    return found[0]


def job_path(item: Item, *more: str) -> str:
    return at("jobs", str(item["id"]), *more)


def one(api: Api, kind: Kind, name: str, namespace: str) -> Item:
    """An object of any kind, whole where the API has more to say of one than in a list."""
    if kind.path == "jobs":
        return dict(api.get(job_path(job(api, name, namespace, kind))))
    if kind.path == "clusters":
        return dict(api.get(at("clusters", name)))
    found = select(api, kind, namespace, name=name)
    if not found:
        raise missing(f"there is no {kind.word} {name!r}" + (f" in namespace {namespace}" if kind.namespaced else ""))
    return found[0]
