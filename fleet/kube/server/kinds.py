"""What a server asks of its storage: of each kind, and of the history that all kinds share.

A kind describes itself to discovery and to tables, and stores its objects; it knows nothing of HTTP.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from fleet.kube import discovery
from fleet.kube.discovery import Served
from fleet.kube.requests.status import KubeError, unknown_path
from fleet.kube.schema import builtin, schemas
from fleet.kube.schema.schemas import Schema
from fleet.kube.server.request import Request
from fleet.kube.tables import AGE, NAME, Column

Object = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name: the order of lists, and what a page ends with."""
Exact = Mapping[str, str]
"""Fields by their paths, and the one value each must have."""
Namespaces = frozenset[str] | None
"""None: all of them."""
BY_NAME = "metadata.name"
LABEL = "metadata.labels/"
"""Before the key of a label, among the exact fields."""


def method_not_allowed(why: str = "") -> KubeError:
    """A new error for each refusal: one that is raised again keeps the frames of every time before."""
    message = "the server does not allow this method on the requested resource"
    return KubeError(405, f"{message}: {why}" if why else message)


@dataclass(slots=True)
class Write:
    """How an object is written, by whom, when and where; warnings go back to the caller."""

    by: str
    now: datetime
    namespace: str = ""
    subresource: str = ""
    dry: bool = False
    """Whether nothing is to be stored."""
    warnings: list[str] = field(default_factory=list)
    applies: bool = False
    """Whether it is a server-side apply."""
    manage: Callable[[Object | None, Object], Object] = lambda old, new: new
    """Returns the new object with its ``managedFields``, from the old one with its own."""


class Kind(ABC):
    """One served kind, and the storage of its objects."""

    served: Served
    verbs: tuple[str, ...] = discovery.VERBS
    remedies: Mapping[str, str] = {}
    """What to do instead of a verb it does not take."""
    columns: Sequence[Column] = ()
    """Of a table, between NAME and the end; a kind without any shows its AGE."""
    names_first = True
    """Whether NAME is the first column."""
    field_labels: frozenset[str] = frozenset()
    """What ``--field-selector`` may ask for besides name and namespace."""

    @property
    def schema(self) -> Schema:
        """The schema of its objects; open where none is written down."""
        return builtin.schema(self.served.resource) or schemas.of_kind(self.served.document)

    @property
    def name(self) -> str:
        return self.served.resource.kind

    @cached_property
    def shown(self) -> Served:
        """The kind as discovery shows it."""
        return replace(self.served, verbs=self.verbs)

    @property
    def patches(self) -> tuple[str, ...]:
        """The content types of patches it takes beside those of an apply."""
        strategic = ("application/strategic-merge-patch+json",) if builtin.known(self.served.resource) else ()
        return ("application/json-patch+json", "application/merge-patch+json", *strategic)

    def not_allowed(self, verb: str, subresource: str = "") -> KubeError:
        if subresource:
            return method_not_allowed()
        return method_not_allowed(self.remedies.get(verb, ""))

    def names_of(self, shown: Object) -> Sequence[str]:
        """The names by which a field selector may name the object, of which its names alone may be known."""
        return (shown["metadata"].get("name", ""),)

    def not_served(self, subresource: str) -> KubeError:
        """The error of a subresource that the kind does not have."""
        return unknown_path()

    def table_columns(self) -> Sequence[Column]:
        return (*((NAME,) if self.names_first else ()), *(self.columns or (AGE,)))

    @abstractmethod
    def objects(self, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        """The objects of the namespaces, behind the key, with exactly these fields; in the order of their keys.

        Of the fields, a kind heeds its name and what else saves it work: the caller selects again.
        """

    def objects_at(self, version: int, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        """The objects of a version, where the storage keeps former ones; else those of now."""
        return self.objects(namespaces, after, exact)

    def lines(self, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        """The same objects with no more of them than columns and selectors read: most of `kubectl get`."""
        return self.objects(namespaces, after, exact)

    def lines_at(self, version: int, namespaces: Namespaces, after: Key | None, exact: Exact) -> Iterator[Object]:
        return self.lines(namespaces, after, exact)

    def count(self, namespaces: Namespaces) -> int:
        """How many objects there are."""
        return sum(1 for _ in self.objects(namespaces, None, {}))

    def get(self, namespace: str, name: str) -> Object | None:
        namespaces = frozenset({namespace}) if self.served.resource.namespaced else None
        objects = self.objects(namespaces, None, {BY_NAME: name})
        return next((shown for shown in objects if shown["metadata"]["name"] == name), None)

    def managed(self, objects: Sequence[Object]) -> list[Object]:
        """The objects with their ``managedFields``, where these are stored beside them."""
        return list(objects)

    def written(self, stored: Object) -> Object:
        """The part of an object that clients write."""
        return stored

    def admitted(self, document: Object, write: Write) -> Object:
        """What was sent as far as the kind knows it: defaults filled in, unknown fields dropped; raises BadRequest."""
        return document

    def check_new(self, document: Object, write: Write) -> None:  # noqa: B027 - most kinds forbid nothing
        """Raises what forbids to create the object, before it is compared with what is there."""

    def has_changed(self, current: Object, version: str) -> bool:
        """Whether an object sent under this version was made from another one than the current."""
        return bool(version != current["metadata"]["resourceVersion"])

    def store(self, old: Object | None, new: Object, write: Write) -> Object:
        """Creates the object, or replaces the old one; returns it as stored. Raises Invalid."""
        raise method_not_allowed()

    def remove(self, current: Object, options: Object, write: Write) -> Object:
        """Deletes the object; returns a Status, or the object while something is left to wait for."""
        raise method_not_allowed()


class History(ABC):
    """The versions that all objects of a server share."""

    piece = 0
    """Objects of a list without a limit that are kept in memory at once; 0: all."""

    @abstractmethod
    def version(self) -> int:
        """The version of the newest change that every reader sees."""

    def newest(self) -> int:
        """The newest version a client may have been sent."""
        return self.version()

    @abstractmethod
    def floor(self) -> int:
        """Changes up to this version are forgotten."""

    def limit(self, request: Request) -> int:
        """How many objects the page may have; a server may give fewer than a request's limit."""
        return request.number("limit")

    @contextmanager
    def transaction(self, dry: bool) -> Iterator[None]:
        """Around one write; what a dry one stored is taken back."""
        yield
