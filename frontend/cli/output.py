"""Prints tables, colours, JSON and YAML. It knows neither jobs nor clusters.

A terminal gets colours and its own width. A pipe gets plain columns, one line for each row, never wrapped. Text from the server
is printed without control characters, so that no manifest can control the reader's terminal.
"""

import builtins
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from frontend.cli.problems import Problem
from frontend.cli.terminal import Tame

PIPE_WIDTH = 100_000
STYLES = {
    "Running": "green",
    "Ready": "green",
    "Succeeded": "bold green",
    "Normal": "green",
    "Failed": "bold red",
    "Warning": "yellow",
    "NotReady": "red",
    "Unknown": "yellow",
    "Queued": "yellow",
    "Pending": "yellow",
    "Moving": "magenta",
    "Backoff": "yellow",
    "Suspended": "blue",
}
FULL, HALF = "█", "▒"


@dataclass(frozen=True, slots=True)
class Screen:
    """The output of a command: results to stdout, notes and errors to stderr."""

    out: Console
    err: Console
    tame: Tame = field(default_factory=Tame)

    def line(self, text: str = "", style: str = "") -> None:
        self.out.print(Text(clean(text), style=style), soft_wrap=True)

    def note(self, text: str, style: str = "dim") -> None:
        """Prints a remark to stderr, so that it is not part of the result."""
        self.err.print(Text(clean(text), style=style), soft_wrap=True)

    def table(
        self, headers: Sequence[str], rows: Iterable[Sequence[str]], *, indent: int = 0, headed: bool = True
    ) -> None:
        cells = [[clean(str(cell)) for cell in row] for row in rows]
        if self.out.is_terminal:
            self.out.print(_grid(headers, cells, indent, headed))
            return
        for text in _aligned([list(headers), *cells], " " * indent)[0 if headed else 1 :]:
            self.line(text)

    def json(self, value: object) -> None:
        self.out.file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def yaml(self, value: object) -> None:
        import yaml

        self.out.file.write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))

    def document(self, value: object, form: str, render: Callable[[Any], str]) -> None:
        """Prints the value as YAML, as JSON, or as ``render`` formats it."""
        if form == "yaml":
            self.yaml(value)
        elif form == "json":
            self.json(value)
        else:
            self.out.file.write(clean(render(value)))
        self.out.file.flush()

    def problem(self, problem: Problem) -> None:
        self.err.print(Text("error: ", style="bold red") + Text(clean(problem.message)), soft_wrap=True)
        for detail in problem.details:
            self.err.print(Text(f"  {clean(detail)}"), soft_wrap=True)
        if problem.hint:
            self.err.print(Text(f"hint: {clean(problem.hint)}", style="dim"), soft_wrap=True)

    def bytes(self, chunk: bytes) -> None:
        """Prints a log exactly as the pod wrote it; but to a terminal nothing that controls it."""
        self.out.file.flush()
        if self.out.file.isatty():
            self._tamed(self.tame.feed(chunk))
        else:
            self.out.file.buffer.write(chunk)  # type: ignore[attr-defined]  # rich types it as a text stream
        self.out.file.flush()

    def log(self, chunks: Iterable[builtins.bytes]) -> None:
        """Prints a log as it comes, and leaves the terminal as it was, also where the reader ends it."""
        try:
            for chunk in chunks:
                self.bytes(chunk)
        finally:
            if self.out.file.isatty():
                self._tamed(self.tame.end())
                self.out.file.flush()

    def _tamed(self, text: str) -> None:
        encoding = self.out.encoding
        self.out.file.write(text.encode(encoding, "replace").decode(encoding))


def screen() -> Screen:
    return Screen(_console(sys.stdout), _console(sys.stderr))


def _console(file: TextIO) -> Console:
    """A console for the file. Rich respects ``NO_COLOR`` and ``COLUMNS``, the latter for pipes too."""
    piped = not file.isatty()
    width = PIPE_WIDTH if piped and "COLUMNS" not in os.environ else None
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False)


def _grid(headers: Sequence[str], cells: list[list[str]], indent: int, headed: bool) -> Table:
    """A table with columns as wide as their content. Only the last column wraps."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", show_header=headed)
    if indent:
        table.add_column("", width=max(indent - 3, 0))
    for number, header in enumerate(headers, 1):
        last = number == len(headers)
        table.add_column(header, no_wrap=not last, overflow="fold" if last else "ellipsis")
    for row in cells:
        table.add_row(*([""] if indent else []), *(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    return table


def _aligned(rows: list[list[str]], margin: str) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        (margin + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def clean(text: str) -> str:
    """The text with a replacement for every control character except newline and tab."""
    return "".join(char if char.isprintable() or char in "\n\t" else "�" for char in text)


def bar(used: int, held: int, total: int, width: int = 20) -> str:
    """Draws used, held and free amounts: ``████▒▒░░░░``. An amount above zero gets at least one character."""
    if total <= 0:
        return "░" * width
    filled = min(width, max(round(width * used / total), 1 if used else 0))
    reserved = min(width - filled, max(round(width * held / total), 1 if held else 0))
    return FULL * filled + HALF * reserved + "░" * (width - filled - reserved)
