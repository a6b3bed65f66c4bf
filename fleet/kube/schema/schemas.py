"""OpenAPI v3 structural schemas, parsed into a value that the other modules of this package use.

The schema of a custom kind comes from its definition, that of a built-in kind from `fleet.kube.schema.builtin`. An absent
schema accepts everything.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

UNSET: Final = object()
ATOMIC, SET, MAP = "atomic", "set", "map"


@dataclass(frozen=True, slots=True)
class Schema:
    """``type`` is empty if any type is allowed. ``extra`` is the schema of the values of a map besides its ``fields``."""

    type: str = ""
    fields: Mapping[str, "Schema"] = field(default_factory=dict)
    items: "Schema | None" = None
    extra: "Schema | None" = None
    required: tuple[str, ...] = ()
    default: Any = UNSET
    choices: tuple[Any, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    """``minimum``, ``pattern`` and similar limits, as in the document."""
    nullable: bool = False
    preserves: bool = False
    """Unknown fields are kept."""
    embedded: bool = False
    """The value is a complete object of some kind, with its own metadata."""
    int_or_text: bool = False
    list_type: str = ATOMIC
    keys: tuple[str, ...] = ()
    """Keys that identify the entries of a ``map`` list."""
    whole: bool = False
    """A map that is owned and replaced as a whole (atomic)."""

    @property
    def open(self) -> bool:
        """Whether unknown fields are allowed."""
        return self.preserves or not self.type or (self.type == "object" and not self.fields and self.extra is None)

    def field(self, name: str) -> "Schema | None":
        """The schema of one field. None for an unknown field."""
        return self.fields.get(name, self.extra)


ANY: Final = Schema(preserves=True)
TEXT: Final = Schema("string")
_TEXTS = Schema("object", extra=TEXT)
_OWNER = Schema(
    "object",
    {name: TEXT for name in ("apiVersion", "kind", "name", "uid")}
    | {name: Schema("boolean") for name in ("controller", "blockOwnerDeletion")},
    whole=True,
)
_MANAGED = Schema(
    "object",
    {name: TEXT for name in ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")}
    | {"fieldsV1": ANY},
)
METADATA: Final = Schema(
    "object",
    {
        **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), Schema("string", nullable=True)),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), Schema("integer")),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": Schema("array", items=TEXT, list_type=SET),
        "ownerReferences": Schema("array", items=_OWNER, list_type=MAP, keys=("uid",)),
        "managedFields": Schema("array", items=_MANAGED),
    },
)
"""The schema of metadata, which is the same for all kinds."""
_IDENTITY: Mapping[str, Schema] = {"apiVersion": TEXT, "kind": TEXT, "metadata": METADATA}


def of_kind(document: Mapping[str, Any] | None, named: Callable[[str], Schema] | None = None) -> Schema:
    """The schema of the objects of a kind. ``document`` is its ``openAPIV3Schema``, if it has one."""
    parsed = parse_schema(document or {}, named)
    return replace(parsed, type="object", fields={**parsed.fields, **_IDENTITY})


def parse_schema(document: Mapping[str, Any], named: Callable[[str], Schema] | None = None) -> Schema:
    """Parses a schema and all schemas inside it. ``named`` returns a schema that is referred to by name."""
    if not document:
        return ANY
    if named and (reference := (document.get("allOf") or [document])[0].get("$ref")):
        return named(reference.rpartition("/")[2])
    either = bool(document.get("x-kubernetes-int-or-string")) or document.get("format") == "int-or-string"
    embedded = bool(document.get("x-kubernetes-embedded-resource"))
    extra = document.get("additionalProperties")
    return Schema(
        type="" if either else document.get("type", ""),
        fields={
            **{name: parse_schema(each, named) for name, each in (document.get("properties") or {}).items()},
            **(_IDENTITY if embedded else {}),
        },
        items=parse_schema(document["items"], named) if isinstance(document.get("items"), dict) else None,
        extra=parse_schema(extra, named) if isinstance(extra, dict) else ANY if extra else None,
        required=tuple(document.get("required") or ()),
        default=document.get("default", UNSET),
        choices=tuple(document.get("enum") or ()),
        limits={name: document[name] for name in _LIMITS if document.get(name) is not None},
        nullable=bool(document.get("nullable")),
        preserves=bool(document.get("x-kubernetes-preserve-unknown-fields")),
        embedded=embedded,
        int_or_text=either,
        list_type=document.get("x-kubernetes-list-type", ATOMIC),
        keys=tuple(document.get("x-kubernetes-list-map-keys") or ()),
        whole=document.get("x-kubernetes-map-type") == ATOMIC,
    )


_LIMITS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)


def entry_key(schema: Schema, entry: Any) -> str:
    """The key of an entry in a ``map`` or ``set`` list, in the form of FieldsV1. Empty for a malformed entry."""
    if schema.list_type == SET:
        return "" if isinstance(entry, (dict, list)) or entry is None else f"v:{compact(entry)}"
    if not isinstance(entry, dict):
        return ""
    inner = schema.items or ANY
    values = {name: entry.get(name, inner.fields.get(name, ANY).default) for name in schema.keys}
    key = {name: value for name, value in values.items() if value is not UNSET and value is not None}
    return f"k:{compact(key)}" if key else ""


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def children(schema: Schema, value: Any) -> Iterator[tuple[str | int, Any, Schema | None]]:
    """The fields or entries of a value, each with its schema. The schema of an unknown field is None."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name, inner, schema.field(name) or (ANY if schema.open else None)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield index, inner, schema.items or ANY
