"""Writes the table of the operator's settings into the docs: ``python -m deploy.config.operator_docs [--check]``."""

import sys
from pathlib import Path

from deploy.config import operator
from fleet.core.operator_settings import table

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "operations.md"
_FIRST = "<!-- settings: written by `python -m deploy.config.operator_docs`, checked by the tests -->\n"
_LAST = "<!-- end of settings -->\n"


def written(page: str) -> str:
    """The page with the table as the classes have it."""
    head, _, rest = page.partition(_FIRST)
    _, _, tail = rest.partition(_LAST)
    rows = "".join(f"{row}\n" for row in table(operator.CLASSES.values()))
    return f"{head}{_FIRST}{rows}{_LAST}{tail}"


def main(arguments: list[str]) -> int:
    page = PAGE.read_text()
    if page == written(page):
        return 0
    if "--check" in arguments:
        print(f"{PAGE} is not as the settings are: run python -m deploy.config.operator_docs", file=sys.stderr)
        return 1
    PAGE.write_text(written(page))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
