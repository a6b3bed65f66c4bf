"""The command blocks of the pages that users read, as the commands that a shell is given."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.bootstrap.home import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DEVELOPMENT = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs" / "development").glob("*.md"))]
"""Pages on changes of the code itself: most show what to write, and end in tests."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"\s+# .*$")
_HERE = re.compile(r"<<'(\w+)'")


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    number: int
    """Among all blocks of the page, from 1."""
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.page} {self.number}"


def blocks(page: Path) -> list[Block]:
    name = str(page.relative_to(ROOT))
    return [Block(name, number, *match.groups()) for number, match in enumerate(_BLOCK.finditer(page.read_text()), 1)]


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shell_of(page: Path) -> list[str]:
    return [command for block in blocks(page) if block.language == "sh" for command in commands(block)]


def commands(block: Block) -> Iterator[str]:
    """Each command of a block of shell, with the lines that continue it, without the comments at the ends of lines."""
    command, end = "", ""
    for line in block.text.splitlines():
        if end:
            command, end = f"{command}\n{line}", "" if line == end else end
            if not end:
                yield command
                command = ""
            continue
        command += _COMMENT.sub("", line)
        if here := _HERE.search(command):
            end = here.group(1)
        elif command.endswith("\\") or command.count("'") % 2:
            command = command.removesuffix("\\") + ("\n" if command.count("'") % 2 else " ")
        elif command.strip():
            yield command.strip()
            command = ""
    assert not command, f"{block.page}, block {block.number}: a command that does not end"
