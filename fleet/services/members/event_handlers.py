"""The registry of handlers for what members report about propagated objects, like the event handlers of client-go.

The watcher (`fleet.services.watching.reports`) calls every handler with batches; `fleet` itself knows no job. A call is
repeated when its transaction has to be tried again, so handlers must be idempotent, and must not call a member.
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
    """The permissions that pods of a kind's jobs need in the API of their member, for one ServiceAccount."""

    kind: Resource
    owner: str
    """The part of the job that needs them, in words."""
    account: str
    namespace: str
    rights: tuple[tuple[str, Resource], ...]


class EventHandler(Protocol):
    """``on_update``, ``on_delete`` and ``on_pods_changed`` write nothing when they raise: the caller divides the batch and
    tries the parts again.
    """

    def resources(self) -> list[Resource]:
        """The kinds to watch for objects that carry our job label."""

    def pod_role(self, resource_kind: str, labels: dict[str, str]) -> tuple[str, int]:
        """Role and index of a pod whose owner is of that kind."""

    def account_needs(self) -> list[AccountNeeds]:
        """The permissions that the pods of these kinds need, for each namespace that has such jobs or is known to get them."""

    def has_ended(self, resource: Resource, manifest: dict[str, Any]) -> bool:
        """Whether the object's run has ended, by its own status. Such a report is urgent, because it frees capacity."""

    def on_update(
        self, cluster_id: int, resource: Resource, objects: Sequence[dict[str, Any]], now: datetime
    ) -> Collection[Key]:
        """Objects that were added or modified. Returns the attempts whose pods were read as well: the caller leaves these out
        of ``on_pods_changed``.
        """

    def on_delete(self, cluster_id: int, resource: Resource, objects: Sequence[dict[str, Any]], now: datetime) -> None:
        """Objects that were deleted, in their last state."""

    def expected(self, cluster_id: int, resource: Resource) -> Collection[Key]:
        """The attempts whose objects are recorded as created in the member. Called before a complete list is requested."""

    def on_resync(self, cluster_id: int, resource: Resource, missing: Collection[Key], now: datetime) -> None:
        """A complete list has no objects of these attempts, which were ``expected`` before it was requested."""

    def on_refusals(self, cluster_id: int, refusals: Sequence[ObservedRefusal], now: datetime) -> None:
        """Warnings that the member refused to create pods or services of these objects, which need not be objects of a job.

        A warning may be old, and may be repeated.
        """

    def unmarked(self, cluster_id: int, claims: set[tuple[Mark, str]]) -> set[tuple[Mark, str]]:
        """Of pods without a valid signature, given by (mark, namespace): those that are older than the signatures."""

    def on_pods_changed(self, cluster_id: int, keys: set[Key], now: datetime) -> None:
        """The `Pod` rows of these attempts have changed."""


_handlers: list[EventHandler] = []


def register(handler: EventHandler) -> None:
    _handlers.append(handler)


def registered() -> tuple[EventHandler, ...]:
    return tuple(_handlers)


def expected(cluster_id: int, resource: Resource) -> frozenset[Key]:
    """The attempts that any handler expects in a list that is requested after this call (`EventHandler.expected`)."""
    return frozenset(key for handler in _handlers for key in handler.expected(cluster_id, resource))


def unmarked(cluster_id: int, claims: set[tuple[Mark, str]]) -> set[tuple[Mark, str]]:
    """The claims that any handler accepts (`EventHandler.unmarked`)."""
    return {claim for handler in _handlers for claim in handler.unmarked(cluster_id, claims)}


def resources() -> list[Resource]:
    """The kinds of all handlers, each once."""
    return list(dict.fromkeys(resource for handler in _handlers for resource in handler.resources()))


def account_needs() -> list[AccountNeeds]:
    return [needs for handler in _handlers for needs in handler.account_needs()]


def has_ended(resource: Resource, manifest: dict[str, Any]) -> bool:
    """Whether any handler reports that the object's run has ended."""
    return any(handler.has_ended(resource, manifest) for handler in _handlers)


def pod_role(resource_kind: str, labels: dict[str, str]) -> tuple[str, int]:
    """Role and index from the first handler that knows the kind."""
    answers = (handler.pod_role(resource_kind, labels) for handler in _handlers)
    return next((answer for answer in answers if answer != ("", 0)), ("", 0))
