"""A closed table of transitions: which event takes an object from which states to which one, and which modules cause it.

It knows neither rows nor services. Services take every transition from such a table (`jobs.services.lifecycle.transitions`),
so that a state no table allows is never written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class IllegalTransition(Exception):
    """The event cannot happen to an object in this state: an error of the service that caused it."""


@dataclass(frozen=True, slots=True)
class Transition:
    """What one event does. Without ``sources`` it creates the object."""

    sources: frozenset[str]
    target: str
    writers: tuple[str, ...]
    """Modules of `jobs.services` that cause the event; no other may."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The life of one kind of object."""

    states: tuple[str, ...]
    terminal: frozenset[str]
    """States that no event ends."""
    transitions: Mapping[StrEnum, Transition]

    def allows(self, state: str, event: StrEnum) -> bool:
        return state in self.transitions[event].sources

    def after(self, state: str, event: StrEnum) -> str:
        """The state after the event; raises `IllegalTransition` where it cannot happen."""
        if not self.allows(state, event):
            raise IllegalTransition(f"{event} cannot happen in state {state}")
        return self.transitions[event].target

    def sources(self, event: StrEnum) -> frozenset[str]:
        return self.transitions[event].sources

    def target(self, event: StrEnum) -> str:
        return self.transitions[event].target

    def initial(self) -> frozenset[str]:
        """States in which an object may begin."""
        return frozenset(rule.target for rule in self.transitions.values() if not rule.sources)

    def successors(self, state: str) -> frozenset[str]:
        """States that some event leads to from this one."""
        return frozenset(rule.target for rule in self.transitions.values() if state in rule.sources)

    def reachable(self, *states: str) -> frozenset[str]:
        """These states, and all that any sequence of events leads to from them."""
        known, new = set(states), set(states)
        while new:
            new = {after for state in new for after in self.successors(state)} - known
            known |= new
        return frozenset(known)
