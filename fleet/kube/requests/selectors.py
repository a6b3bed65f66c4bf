"""Label and field selectors: parses query parameters (``a=b,c in (d,e),!f``) and LabelSelector objects, and matches labels."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_SET = re.compile(r"\s*+([^\s,!=()]++)\s++(in|notin)\s*+\(([^()]*+)\)\s*+(?:,|\Z)")
_EQUAL = re.compile(r"\s*+([^\s,!=()]++)\s*+(==|=|!=)\s*+([^\s,!=()]*+)\s*+(?:,|\Z)")
_EXISTS = re.compile(r"\s*+(!?)\s*+([^\s,!=()]++)\s*+(?:,|\Z)")
_NOTHING = re.compile(r"\s*+\Z")
"""All patterns are possessive (``*+``) and never backtrack, so that the time is linear in the length of the text."""
_MAX_REQUIREMENTS = 200
"""Limited because each requirement is checked for each object."""
_SHOWN = 80
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class SelectorError(ValueError):
    """The selector cannot be parsed. The message shows where."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one key. As in Kubernetes, a missing key matches NotIn."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    _texts: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_texts", frozenset(value for value in self.values if isinstance(value, str)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        has = self.key in labels
        if self.operator == "Exists":
            return has
        if self.operator == "DoesNotExist":
            return not has
        inside = has and self._takes(labels[self.key])
        return inside if self.operator == "In" else not inside

    def _takes(self, label: object) -> bool:
        return label in self._texts if isinstance(label, str) else label in self.values


Selector = tuple[Requirement, ...]
"""All of them must match; the empty selector matches everything."""


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    return all(requirement.matches(labels) for requirement in selector)


def parse_labels(text: str) -> Selector:
    """Parses a ``labelSelector`` query parameter."""
    if text.rstrip().endswith(","):
        raise SelectorError(f"unable to parse requirement: nothing follows the last comma of {text[-_SHOWN:]!r}")
    requirements: list[Requirement] = []
    position = 0
    while not _NOTHING.match(text, position):
        requirement, position = _next(text, position)
        requirements.append(requirement)
        _check_number(requirements)
    return tuple(requirements)


def _check_number(requirements: Sequence[Requirement]) -> None:
    if len(requirements) > _MAX_REQUIREMENTS:
        raise SelectorError(f"a selector has at most {_MAX_REQUIREMENTS} requirements")


def _next(text: str, position: int) -> tuple[Requirement, int]:
    if match := _SET.match(text, position):
        key, operator, values = match.groups()
        listed = tuple(value.strip() for value in values.split(","))
        return Requirement(key, "In" if operator == "in" else "NotIn", listed), match.end()
    if match := _EQUAL.match(text, position):
        key, operator, value = match.groups()
        return Requirement(key, "NotIn" if operator == "!=" else "In", (value,)), match.end()
    if match := _EXISTS.match(text, position):
        absent, key = match.groups()
        return Requirement(key, "DoesNotExist" if absent else "Exists"), match.end()
    raise SelectorError(f"unable to parse requirement: {text[position : position + _SHOWN]!r}")


def parse_fields(text: str) -> Selector:
    """Parses a ``fieldSelector`` query parameter, which has only ``=``, ``==`` and ``!=`` on dotted paths."""
    requirements = []
    for term in filter(None, map(str.strip, text.split(","))):
        match = _EQUAL.fullmatch(term)
        if match is None:
            raise SelectorError(f"invalid field selector: {term[:_SHOWN]!r}")
        path, operator, value = match.groups()
        requirements.append(Requirement(path, "NotIn" if operator == "!=" else "In", (value,)))
        _check_number(requirements)
    return tuple(requirements)


def of_manifest(selector: Mapping[str, Any]) -> Selector:
    """Parses a LabelSelector object with ``matchLabels`` and ``matchExpressions``."""
    requirements = [Requirement(key, "In", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    expressions: Sequence[Mapping[str, Any]] = selector.get("matchExpressions") or ()
    for expression in expressions:
        key, operator = expression.get("key"), expression.get("operator")
        if not key or not isinstance(key, str):
            raise SelectorError(f"each expression needs a key, not {key!r}")
        if operator not in _OPERATORS:
            raise SelectorError(f"the operator must be one of {', '.join(_OPERATORS)}, not {operator!r}")
        values = tuple(expression.get("values") or ())
        if bool(values) != (operator in ("In", "NotIn")):
            raise SelectorError(f"values must {'not ' if values else ''}be given with the operator {operator}")
        requirements.append(Requirement(key, operator, values))
    return tuple(requirements)


def matches_label_selector(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    return matches(of_manifest(selector), labels)
