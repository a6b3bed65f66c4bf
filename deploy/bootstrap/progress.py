"""One line for each step that takes time: what is done, and how long it took.

On a terminal the line counts the seconds while it runs; elsewhere it is written once. What a step does is not known.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

GREEN, RED, DIM, BOLD, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"


def wants_colour(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Steps:
    """Writes steps to one stream."""

    def __init__(self, out: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.live = self.out.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = wants_colour(self.out)
        self.detail = ""

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        began = time.monotonic()
        self.detail = ""
        done = threading.Event()
        ticker = threading.Thread(target=self._tick, args=(title, began, done), daemon=True)
        if self.live:
            ticker.start()
        else:
            self.out.write(f"  {title} ... ")
            self.out.flush()
        mark, shade = "✗", RED
        try:
            yield
            mark, shade = "✓", GREEN
        finally:
            done.set()
            if self.live:
                ticker.join()
            self._end(title, mark, shade, time.monotonic() - began)

    def note(self, detail: str) -> None:
        """What the running step is waiting for."""
        self.detail = detail
        if not self.live:
            self.out.write(f"\n    {detail} ... ")
            self.out.flush()

    def say(self, text: str = "") -> None:
        self.out.write(text + "\n")
        self.out.flush()

    def bold(self, text: str) -> str:
        return f"{BOLD}{text}{PLAIN}" if self.colour else text

    def shade(self, text: str, colour: str) -> str:
        return f"{colour}{text}{PLAIN}" if self.colour else text

    def _tick(self, title: str, began: float, done: threading.Event) -> None:
        while not done.wait(0.5):
            detail = f" ({self.detail})" if self.detail else ""
            line = f"  … {title} {time.monotonic() - began:.0f} s{detail}"
            self.out.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
            self.out.flush()

    def _end(self, title: str, mark: str, shade: str, seconds: float) -> None:
        took = f"{seconds:.1f} s"
        if self.live:
            self.out.write(f"\r\x1b[K  {self.shade(mark, shade)} {title} {self.shade(took, DIM)}\n")
        else:
            self.out.write(took + ("\n" if mark == "✓" else " (failed)\n"))
        self.out.flush()
