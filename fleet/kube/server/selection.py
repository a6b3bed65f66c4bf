"""Which objects a list, a watch or a deletion of many selects, by their labels and fields."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.kube.requests import selectors
from fleet.kube.requests.selectors import Selector
from fleet.kube.requests.status import KubeError
from fleet.kube.server.kinds import BY_NAME, LABEL, Kind, Object
from fleet.kube.server.request import Request

_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})
_ELSEWHERE = {"status.successful": ("status", "succeeded"), "source": ("source", "component")}
"""Field labels whose value is not at the path they name."""
_UNSET = {"spec.unschedulable": "false", "status.successful": "0"}


def _own_name(shown: Object) -> Sequence[str]:
    return (shown["metadata"].get("name", ""),)


@dataclass(frozen=True, slots=True)
class Selection:
    labels: Selector = ()
    fields: Selector = ()
    names_of: Callable[[Object], Sequence[str]] = _own_name
    """The names by any of which a field selector may name an object."""

    @property
    def everything(self) -> bool:
        return not (self.labels or self.fields)

    @property
    def exact(self) -> dict[str, str]:
        """The fields that must be one value, labels among them."""
        single = (label for label in self.labels if label.operator == "In" and len(label.values) == 1)
        labels = {LABEL + label.key: label.values[0] for label in single}
        return labels | {field.key: field.values[0] for field in self.fields if field.operator == "In"}

    def may_take(self, names: Object) -> bool:
        """Whether an object of which only the names are known may be selected."""
        return self._fields_match(tuple(field for field in self.fields if field.key in _ALWAYS), names)

    def takes(self, shown: Object) -> bool:
        if self.labels and not selectors.matches(self.labels, shown["metadata"].get("labels") or {}):
            return False
        return self._fields_match(self.fields, shown)

    def _fields_match(self, fields: Selector, shown: Object) -> bool:
        if not fields:
            return True
        values = {field.key: _value(shown, field.key) for field in fields}
        if BY_NAME not in values:
            return selectors.matches(fields, values)
        return any(selectors.matches(fields, {**values, BY_NAME: name}) for name in self.names_of(shown))


def selection(request: Request, kind: Kind) -> Selection:
    """Raises BadRequest for a selector that cannot be read, or names a field the kind is not selected by."""
    try:
        labels = selectors.parse_labels(request.query.get("labelSelector", ""))
        fields = selectors.parse_fields(request.query.get("fieldSelector", ""))
    except selectors.SelectorError as e:
        raise KubeError(400, str(e)) from e
    for requirement in fields:
        if requirement.key not in _ALWAYS | kind.field_labels:
            raise KubeError(400, f"field label not supported: {requirement.key}")
    return Selection(labels, fields, kind.names_of)


def _value(shown: Object, path: str) -> str:
    value: Any = shown
    for part in _ELSEWHERE.get(path) or path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return _UNSET.get(path, "") if value is None else str(value)
