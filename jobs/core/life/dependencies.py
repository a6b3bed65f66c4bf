"""Jobs that start only after others have ended: the annotation ``convoy.dev/after``, when it is met, and cycles of it.

Predecessors are named within the job's namespace, and need not exist yet. Pure: which jobs there are is an argument.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleet.kube import names
from jobs.core.life.jobs import FINISHED, JobState
from jobs.core.manifest_fields import Faults

AFTER = "convoy.dev/after"
"""Annotation of a job, ``a, SparkApplication/b?any``: it starts when a has succeeded and b has ended."""
MOST = 200
"""Predecessors of one job."""
DELETED = "Deleted"
"""What became of a predecessor that was deleted before it had ended."""
_ENTRY = re.compile(r"(?:([A-Za-z]{1,63})/)?([^/?\s]+)(?:\?(.*))?", re.ASCII)
_LISTED = 5


class On(StrEnum):
    """Which end of the predecessor is waited for."""

    OK = "ok"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Predecessor:
    """One entry of the annotation."""

    name: str
    on: On = On.OK
    kind: str = ""
    """Empty: a job of any kind, or all jobs of the name where several kinds have one."""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.kind else self.name


class Progress(StrEnum):
    MET = "Met"
    WAITS = "Waits"
    FAILED = "Failed"
    """It waits for a success, and the predecessor has failed or was deleted before it succeeded."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one predecessor stands."""

    of: Predecessor
    progress: Progress
    state: str
    """Of the job that is waited for; empty: there is none, and never was."""

    @property
    def text(self) -> str:
        if self.progress is Progress.FAILED:
            return f"{self.of} {'was deleted' if self.state == DELETED else 'has failed'}"
        return f"{self.of} ({self.state or 'not submitted yet'})"


def parse_after(annotations: object, faults: Faults) -> tuple[Predecessor, ...]:
    """The entries of the annotation, in its order."""
    text = annotations.get(AFTER) if isinstance(annotations, Mapping) else None
    if not isinstance(text, str) or not text.strip():
        return ()
    path, listed = f"metadata.annotations.{AFTER}", [_parse(entry.strip()) for entry in text.split(",")]
    for entry, parsed in zip(text.split(","), listed, strict=True):
        if parsed is None:
            faults.add(
                path, f'must name jobs, such as "a, b?any, SparkApplication/c?ok"; {entry.strip()[:80]!r} is none'
            )
    known = [each for each in listed if each is not None]
    for each in {each for each in known if sum((e.name, e.kind) == (each.name, each.kind) for e in known) > 1}:
        faults.add(path, f"names {each} twice")
    if len(known) > MOST:
        faults.add(path, f"names {len(known)} jobs, more than {MOST}")
    return tuple(known)


def _parse(entry: str) -> Predecessor | None:
    match = _ENTRY.fullmatch(entry)
    if match is None or names.subdomain_fault(match[2]) or match[3] not in (None, *On):
        return None
    return Predecessor(match[2], On(match[3] or On.OK), match[1] or "")


def standing(of: Predecessor, states: Collection[str], last: str) -> Standing:
    """``states`` of the jobs that it names; ``last``: what had become of one that was deleted, empty if none was."""
    live = sorted(state for state in states if state not in FINISHED)
    if live:
        return Standing(of, Progress.WAITS, live[0])
    ended = [*states] or ([last] if last else [])
    if not ended:
        return Standing(of, Progress.WAITS, "")
    failed = sorted(state for state in ended if state != JobState.SUCCEEDED)
    if of.on is On.ANY or not failed:
        return Standing(of, Progress.MET, ended[0])
    return Standing(of, Progress.FAILED, failed[0])


def message_of(standings: Sequence[Standing]) -> str:
    """Why the job waits, of predecessors that are not met; those that cannot be met any more by themselves first."""
    if failed := [each for each in standings if each.progress is Progress.FAILED]:
        names_of = _listed([str(each.of) for each in failed])
        again = f"submit {names_of} again, or apply this job with {failed[0].of}?any, or without it"
        return f"{_listed([each.text for each in failed])}, and {AFTER} asks for success: {again}"
    return f"waits for {_listed([each.text for each in standings])}, as its {AFTER} says"


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    return ", ".join([*texts[:_LISTED], *([f"{more} more"] if more > 0 else [])])


@dataclass(frozen=True, slots=True)
class Edge:
    """One job that waits for the jobs of a name."""

    job: int
    name: str
    kind: str
    of: Predecessor


def find_cycle(edges: Iterable[Edge], jobs: Collection[int]) -> list[str]:
    """The names along a cycle that one of these jobs is part of, the first of them again at the end; empty: there is none."""
    after: dict[int, list[Predecessor]] = {}
    named: dict[str, dict[int, str]] = {}
    labels: dict[int, str] = {}
    for edge in edges:
        after.setdefault(edge.job, []).append(edge.of)
        named.setdefault(edge.name, {})[edge.job] = edge.kind
        labels[edge.job] = edge.name
    for start in sorted(_never_first(after, named).intersection(jobs)):
        if path := _path_back(start, after, named):
            return [labels[job] for job in path]
    return []


Named = Mapping[str, Mapping[int, str]]
"""The jobs of each name with their kinds."""


def _never_first(after: Mapping[int, Sequence[Predecessor]], named: Named) -> set[int]:
    """The jobs of a cycle and those that come after one: what is left when all that can start are taken out, one by one.

    In one pass over all edges: mostly none is left, and no job has to be followed through chains of thousands.
    """
    left = {job: {before for of in names for before in _jobs_of(of, named)} for job, names in after.items()}
    followers: dict[int, list[int]] = {}
    for job, befores in left.items():
        for before in befores:
            followers.setdefault(before, []).append(job)
    ready = [job for job, befores in left.items() if not befores]
    while ready:
        job = ready.pop()
        del left[job]
        for follower in followers.get(job, ()):
            left[follower].remove(job)
            if not left[follower]:
                ready.append(follower)
    return set(left)


def _jobs_of(of: Predecessor, named: Named) -> Iterator[int]:
    return (job for job, kind in named.get(of.name, {}).items() if of.kind in ("", kind))


def _path_back(start: int, after: Mapping[int, Sequence[Predecessor]], named: Named) -> list[int]:
    """The jobs from ``start`` along its predecessors back to it. Depth first, without recursion: chains may be long."""
    came_from: dict[int, int] = {}
    open_jobs = [start]
    while open_jobs:
        job = open_jobs.pop()
        for of in after[job]:
            for before in _jobs_of(of, named):
                if before == start:
                    return [start, *_trace(came_from, job, start)]
                if before not in came_from:
                    came_from[before] = job
                    open_jobs.append(before)
    return []


def _trace(came_from: Mapping[int, int], job: int, start: int) -> list[int]:
    path = [start]
    while job != start:
        path.append(job)
        job = came_from[job]
    return path[::-1]
