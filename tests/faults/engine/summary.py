"""``python -m tests.faults.engine.summary REPORT...``: the schedules of reports as a table, by target and fault."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults.engine import effects
from tests.faults.engine.schedules import STRIKES

Line = Mapping[str, Any]


def read(report: Path) -> list[Line]:
    return [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []


def left_to_run(seeds: Iterable[int], lines: Iterable[Line], database: str) -> list[int]:
    """The seeds that the report does not have on this database; starved ones are run again."""
    done = {line["seed"] for line in lines if line["database"] == database and counts(line)}
    return [seed for seed in seeds if seed not in done]


def counts(line: Line) -> bool:
    """Not on a machine so busy that what a strike excuses was excused everywhere, nor with a guard taken out."""
    return not line.get("starved") and not line.get("mutation")


def table(lines: Sequence[Line]) -> str:
    """Markdown: how often each target was struck by each fault, and the seeds that found something."""
    struck: Counter[tuple[str, str]] = Counter()
    seeds: dict[tuple[str, str], list[str]] = {}
    for line in filter(counts, lines):
        for strike in line["schedule"].partition(" (purge")[0].split(", then "):
            target, fault = strike.split()[:2]
            struck[target, fault] += 1
            if line["faults"]:
                seeds.setdefault((target, fault), []).append(f"{line['seed']} ({line['database']})")
    rows = [f"| {t} | {f} | {struck[t, f]} | {', '.join(seeds.get((t, f), []))} |" for t, f in STRIKES]
    return "\n".join(["| target | fault | strikes | seeds that found something |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    lines = [line for name in sys.argv[1:] for line in read(Path(name))]
    print(table(lines), effects.table(list(filter(counts, lines))), sep="\n\n")
