"""Command lines with what they printed, as the documents have them that Convoy's users read: ``transcripts/*.txt``."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("transcripts")
_PROGRAMS = ("arena", "convoy", "kubectl")


@dataclass(frozen=True)
class Step:
    """``line`` is a command line as it is pasted into a shell, ``printed`` what the document shows below it."""

    line: str
    printed: str

    @property
    def program(self) -> str:
        return self.line.split()[0]

    @property
    def words(self) -> list[str]:
        """The arguments as a shell splits them."""
        functions = "".join(f'{program}() {{ printf "%s\\0" "$@"; }}\n' for program in _PROGRAMS)
        done = subprocess.run(["bash", "-c", functions + self.line], capture_output=True, text=True, check=True)  # noqa: S607
        return done.stdout.split("\0")[:-1]


def read(name: str) -> list[Step]:
    """The steps of one document, in its order. A command line begins with ``$`` and goes on after a backslash."""
    steps: list[Step] = []
    lines = iter((FOLDER / f"{name}.txt").read_text().splitlines(keepends=True))
    for text in lines:
        if not text.startswith("$ "):
            steps[-1] = Step(steps[-1].line, steps[-1].printed + text)
            continue
        line = text.removeprefix("$ ")
        while line.endswith("\\\n"):
            line += next(lines)
        steps.append(Step(line.rstrip("\n"), ""))
    return steps
