"""What a token may be used for at the most: its user's roles decide, and the scope of the token takes away. Pure.

Verbs, kinds and namespaces are those of `fleet.services.authorization.access`. What a scope does not name is not limited.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

READ = "read"
VERBS = (
    READ, "apply", "delete", "suspend", "resume", "move", "join", "detach", "cordon", "label", "hold", "drain", "stop", "open",
    "grant", "revoke", "mint", "change",
)  # fmt: skip
_FIELDS = ("verbs", "kinds", "namespaces")
_MOST = 50
_Names = frozenset[str] | None


@dataclass(frozen=True, slots=True)
class Scope:
    """None: not limited."""

    verbs: _Names = None
    kinds: _Names = None
    namespaces: _Names = None

    def allows(self, verb: str, kinds: Collection[str]) -> bool:
        """Somewhere; ``kinds`` are the names that the kind goes by."""
        has_verb = self.verbs is None or verb in self.verbs
        return has_verb and (self.kinds is None or not self.kinds.isdisjoint(kinds))

    def reaches(self, namespace: str) -> bool:
        """Empty: all namespaces."""
        return self.namespaces is None or namespace in self.namespaces

    def is_within(self, other: "Scope") -> bool:
        """Whether it allows nothing that the other does not."""
        return all(_is_within(getattr(self, name), getattr(other, name)) for name in _FIELDS)

    def as_json(self) -> dict[str, list[str]] | None:
        """None for one that limits nothing."""
        return {name: sorted(names) for name in _FIELDS if (names := getattr(self, name)) is not None} or None

    def __str__(self) -> str:
        limits = self.as_json() or {}
        return "; ".join(f"{name} {', '.join(listed) or 'none'}" for name, listed in limits.items()) or "no limits"


WHOLE = Scope()


def from_json(document: Mapping[str, Any] | None) -> Scope:
    """One that was stored by `Scope.as_json`."""
    return Scope(**{name: frozenset(names) for name, names in (document or {}).items()})


def faults(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Field and detail of all that is wrong with what was asked for; an empty list would be a token for nothing."""
    for name, listed in document.items():
        if name not in _FIELDS:
            yield f"scope.{name}", f"is not known; known are {', '.join(_FIELDS)}"
        elif not isinstance(listed, list) or not listed or not all(isinstance(text, str) and text for text in listed):
            yield f"scope.{name}", "must be a list of names; leave it out for no limit"
        elif len(listed) > _MOST or max(map(len, listed)) > 63:
            yield f"scope.{name}", f"must have at most {_MOST} names of at most 63 characters"
        elif name == "verbs" and (unknown := sorted(set(listed) - set(VERBS))):
            yield f"scope.{name}", f"has no verb {unknown[0]!r}; known are {', '.join(VERBS)}"


def _is_within(mine: _Names, other: _Names) -> bool:
    return other is None or (mine is not None and mine <= other)
