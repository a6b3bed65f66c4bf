"""The registry of handlers for what members report about the objects we made there, as the event handlers of client-go.

The watcher (`fleet.services.watching.reports`) calls every handler with batches; the fleet itself knows no job. All calls are
repeated when a transaction has to be tried again, so they must be idempotent, and they may not call a member.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from fleet.core.members.observed import Mark, ObservedRefusal
from fleet.kube.resources import Resource

Key = tuple[UUID, int]
"""A job's uid and the number of an attempt."""


@dataclass(frozen=True, slots=True)
class AccountNeeds:
    """What pods of a kind's jobs do through their member's API as a ServiceAccount, and must be allowed to."""

    kind: Resource
    owner: str
    """Which part of the jobs, in words."""
    account: str
    namespace: str
    rights: tuple[tuple[str, Resource], ...]


class EventHandler(Protocol):
    """``on_update``, ``on_delete`` and ``on_pods_changed`` write nothing when they raise: the batch is tried again in parts."""

    def resources(self) -> list[Resource]:
        """The kinds to watch for objects that carry our job label."""

    def pod_role(self, resource_kind: str, labels: dict[str, str]) -> tuple[str, int]:
        """Role and index of a pod whose owner is of that kind."""

    def account_needs(self) -> list[AccountNeeds]:
        """Of the namespaces in which such jobs are, or usually are."""

    def has_ended(self, resource: Resource, manifest: dict[str, Any]) -> bool:
        """Whether what the object runs is over, by its own status: then others may start, and its report is urgent."""

    def on_update(
        self, cluster_id: int, resource: Resource, objects: Sequence[dict[str, Any]], now: datetime
    ) -> Collection[Key]:
        """Objects that are new or different. Returns the attempts whose pods were looked at as well, and need not be again."""

    def on_delete(self, cluster_id: int, resource: Resource, objects: Sequence[dict[str, Any]], now: datetime) -> None:
        """Objects that were deleted, as they last were."""

    def on_resync(self, cluster_id: int, resource: Resource, present: set[Key], asked: datetime, now: datetime) -> None:
        """A whole list was asked for at ``asked``, and these were in it."""

    def on_refusals(self, cluster_id: int, refusals: Sequence[ObservedRefusal], now: datetime) -> None:
        """The member does not create pods or services of these objects, whosever they are. May be old, and be repeated."""

    def unmarked(self, cluster_id: int, claims: set[tuple[Mark, str]]) -> set[tuple[Mark, str]]:
        """Of pods without a genuine mark, by (whose, namespace), those that were made before there were marks."""

    def on_pods_changed(self, cluster_id: int, keys: set[Key], now: datetime) -> None:
        """The `Pod` rows of these attempts are different now."""


_handlers: list[EventHandler] = []


def register(handler: EventHandler) -> None:
    _handlers.append(handler)


def registered() -> tuple[EventHandler, ...]:
    return tuple(_handlers)


def unmarked(cluster_id: int, claims: set[tuple[Mark, str]]) -> set[tuple[Mark, str]]:
    """Those that any handler vouches for."""
    return {claim for handler in _handlers for claim in handler.unmarked(cluster_id, claims)}


def resources() -> list[Resource]:
    """The kinds of all handlers, each once."""
    return list(dict.fromkeys(resource for handler in _handlers for resource in handler.resources()))


def account_needs() -> list[AccountNeeds]:
    return [needs for handler in _handlers for needs in handler.account_needs()]


def has_ended(resource: Resource, manifest: dict[str, Any]) -> bool:
    """Whether any handler says so."""
    return any(handler.has_ended(resource, manifest) for handler in _handlers)


def pod_role(resource_kind: str, labels: dict[str, str]) -> tuple[str, int]:
    """What the first handler that knows the kind says."""
    answers = (handler.pod_role(resource_kind, labels) for handler in _handlers)
    return next((answer for answer in answers if answer != ("", 0)), ("", 0))
