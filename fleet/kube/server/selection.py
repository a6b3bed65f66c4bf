"""Which objects a list, a watch or a deletion of many selects, by their labels and fields."""

from dataclasses import dataclass
from typing import Any

from fleet.kube import selectors
from fleet.kube.selectors import Selector
from fleet.kube.server.kinds import Kind, Object
from fleet.kube.server.request import Request
from fleet.kube.status import KubeError

_ALWAYS = frozenset({"metadata.name", "metadata.namespace"})
_ELSEWHERE = {"status.successful": ("status", "succeeded"), "source": ("source", "component")}
"""Field labels whose value is not at the path they name."""
_UNSET = {"spec.unschedulable": "false", "status.successful": "0"}


@dataclass(frozen=True, slots=True)
class Selection:
    labels: Selector = ()
    fields: Selector = ()

    @property
    def everything(self) -> bool:
        return not (self.labels or self.fields)

    @property
    def exact(self) -> dict[str, str]:
        """The fields that must be one value."""
        return {field.key: field.values[0] for field in self.fields if field.operator == "In"}

    def may_take(self, names: Object) -> bool:
        """Whether an object of which only the names are known may be selected."""
        known = [field for field in self.fields if field.key in _ALWAYS]
        return selectors.matches(tuple(known), {field.key: _value(names, field.key) for field in known})

    def takes(self, shown: Object) -> bool:
        if self.labels and not selectors.matches(self.labels, shown["metadata"].get("labels") or {}):
            return False
        return not self.fields or selectors.matches(
            self.fields, {field.key: _value(shown, field.key) for field in self.fields}
        )


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
    return Selection(labels, fields)


def _value(shown: Object, path: str) -> str:
    value: Any = shown
    for part in _ELSEWHERE.get(path) or path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return _UNSET.get(path, "") if value is None else str(value)
