"""A state machine as a closed table: for each event its source states, its target state, and the modules that cause it.

It knows neither rows nor services. Services make every transition through such a table (`jobs.services.lifecycle.transitions`),
so that no transition outside the table is ever written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class IllegalTransition(Exception):
    """The event is not allowed in this state. This is a programming error of the service that caused it."""


@dataclass(frozen=True, slots=True)
class Transition:
    """What one event does. An event without ``sources`` creates the object."""

    sources: frozenset[str]
    target: str
    writers: tuple[str, ...]
    """The only modules of `jobs.services` that may cause the event."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The state machine of one kind of object."""

    states: tuple[str, ...]
    terminal: frozenset[str]
    """States that no event leaves."""
    transitions: Mapping[StrEnum, Transition]

    def allows(self, state: str, event: StrEnum) -> bool:
        return state in self.transitions[event].sources

    def after(self, state: str, event: StrEnum) -> str:
        """The state after the event. Raises `IllegalTransition` if the event is not allowed in ``state``."""
        if not self.allows(state, event):
            raise IllegalTransition(f"{event} cannot happen in state {state}")
        return self.transitions[event].target

    def sources(self, event: StrEnum) -> frozenset[str]:
        return self.transitions[event].sources

    def target(self, event: StrEnum) -> str:
        return self.transitions[event].target

    def initial(self) -> frozenset[str]:
        """The states in which an object can be created."""
        return frozenset(rule.target for rule in self.transitions.values() if not rule.sources)

    def successors(self, state: str) -> frozenset[str]:
        """The states that one event can lead to from this one."""
        return frozenset(rule.target for rule in self.transitions.values() if state in rule.sources)

    def reachable(self, *states: str) -> frozenset[str]:
        """These states, and all states that any sequence of events leads to from them."""
        reached, new = set(states), set(states)
        while new:
            new = {after for state in new for after in self.successors(state)} - reached
            reached |= new
        return frozenset(reached)
