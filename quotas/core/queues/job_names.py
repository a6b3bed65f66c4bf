"""Which names of jobs a message may hold.

A message that is kept with a job is read by everyone who reads the job's namespace: it names jobs of that namespace alone.
Names of other jobs are kept beside it as facts, which each API shows to those who may read their namespaces.
"""

from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "a job of another team"


def namespace_of(name: str) -> str:
    """``namespace/name``, with the kind before it or not; empty for a name without a namespace."""
    return name.rpartition(" ")[2].rpartition("/")[0]


def shown_to(name: str, reader: str) -> str:
    """``name`` as a message about the job ``reader`` has it."""
    return name if namespace_of(name) == namespace_of(reader) else HIDDEN


def facts_within(facts: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """The quota's facts about a job as every reader of its namespace may have them: names of other namespaces are empty."""
    return {
        **facts,
        **{key: _within(name, namespace) for key in ("blocker",) if (name := facts.get(key))},
        **{key: [_within(name, namespace) for name in facts[key]] for key in ("from_jobs",) if facts.get(key)},
    }


def _within(name: str, namespace: str) -> str:
    return name if namespace_of(name) == namespace else ""


def listed_to(names: Iterable[str], reader: str) -> str:
    """Several names as a message about the job ``reader`` has them: its own namespace's, then how many there are of others."""
    listed = list(names)
    shown = [name for name in listed if namespace_of(name) == namespace_of(reader)]
    hidden = len(listed) - len(shown)
    others = [] if not hidden else [HIDDEN if hidden == 1 else f"{hidden} jobs of other teams"]
    return ", ".join([*shown, *others])
