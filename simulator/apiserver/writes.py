"""What a write does to the fields of an object on its way in: unknown fields are reported and dropped, defaults are filled
in, values are judged, and whose each field is is written down. Built-in kinds are judged elsewhere, by `rules` and `defaults`.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fleet.kube import builtin, managed, status, strictness, structural, validation
from fleet.kube.bodies import Body
from fleet.kube.discovery import Served
from fleet.kube.managed import APPLY, UPDATE, Manager
from fleet.kube.options import WriteOptions
from fleet.kube.schemas import METADATA, Schema

Object = dict[str, Any]
_KEPT = ("apiVersion", "kind", "metadata", "status")


@dataclass(slots=True)
class Write:
    """Who writes, and how it is to be taken; ``warnings`` go back to the person."""

    options: WriteOptions = WriteOptions()
    duplicates: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)

    def by(self, served: Served, subresource: str, operation: str) -> Manager:
        return Manager(self.options.manager, operation, served.resource.api_version, subresource)

    def look(self, body: Object, served: Served, schema: Schema) -> None:
        """For what is not known, or stands twice."""
        whole = Body(body, self.duplicates)
        self.warnings += strictness.checked(whole, schema, served.resource, self.options.validation)


def taken(body: Object, served: Served, schema: Schema, write: Write, subresource: str = "") -> Object:
    """The object as far as its kind knows it, with the defaults of its definition; of a status write no more than that."""
    if subresource:
        body = {name: each for name, each in body.items() if name in _KEPT or name not in schema.fields}
    metadata = {**body["metadata"]}
    book = metadata.pop("managedFields", None)
    body = {**body, "metadata": metadata}
    write.look(body, served, schema)
    known: Object = structural.with_defaults(schema, structural.pruned(schema, body))
    if builtin.known(served.resource):
        known = structural.without_empty(schema, known)
    metadata = structural.without_empty(METADATA, known["metadata"])
    return {**known, "metadata": metadata if book is None else {**metadata, "managedFields": book}}


def judged(made: Object, served: Served, schema: Schema) -> Object:
    """Raises Invalid with every field that is not what the definition allows."""
    if not builtin.known(served.resource) and (causes := validation.faults(schema, made)):
        raise status.faulty(served.resource, made["metadata"].get("name", ""), causes)
    return made


def noted(
    old: Object | None, new: Object, served: Served, schema: Schema, write: Write, subresource: str = ""
) -> Object:
    """``new`` with what the write changed noted as the writer's."""
    before = builtin.always(served.resource) if old is None else old
    manager = write.by(served, subresource, UPDATE)
    return managed.updated(schema, before, new, manager, datetime.now(UTC))


def applied(
    live: Object | None, body: Object, served: Served, schema: Schema, write: Write, subresource: str
) -> Object:
    """The object with the body applied: its status only through that subresource, everything else only beside it."""
    config = structural.pruned(schema, body)
    if "status" in served.subresources:
        apart = [name for name in config if (name == "status") != (subresource == "status")]
        for name in set(apart) - {"apiVersion", "kind", "metadata"}:
            del config[name]
    before = builtin.always(served.resource) if live is None else live
    write.look(body, served, schema)
    manager = write.by(served, subresource, APPLY)
    return managed.applied(schema, before, config, manager, datetime.now(UTC), force=write.options.force)
