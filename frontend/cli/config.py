"""Which server and which token to use: from flags, else from the environment, else from files.

Order: ``--server``/``--token``; ``CONVOY_URL``/``CONVOY_TOKEN``; ``~/.config/convoy/config.json`` (written by
``convoy login``); ``$CONVOY_HOME/cli.json``; ``./.convoy/cli.json`` (written by ``manage.py up``). A token is only ever
sent to the server it was saved for: a token from a file is dropped when the server comes from elsewhere and differs.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from frontend.cli.problems import Problem

URL = "CONVOY_URL"
TOKEN = "CONVOY_TOKEN"  # noqa: S105 - the name of a variable
LOGIN_HINT = "sign in with `convoy login URL`, or start a fleet of your own with `python3 manage.py up`"


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go. ``source`` says where the address was found, ``token_source`` where the token was."""

    url: str = ""
    token: str = ""
    source: str = ""
    token_source: str = ""


def saved_path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "convoy" / "config.json"


def files() -> list[Path]:
    home = os.environ.get("CONVOY_HOME")
    return [saved_path(), *([Path(home) / "cli.json"] if home else []), Path(".convoy") / "cli.json"]


def resolve(server: str = "", token: str = "") -> Target:
    """The address and the token, each from the first source that has it."""
    resolved = Target()
    for place in _places(server, token):
        if place.url and not resolved.url:
            resolved = replace(resolved, url=place.url, source=place.source)
        if place.token and not resolved.token and (not place.url or place.url == resolved.url):
            resolved = replace(resolved, token=place.token, token_source=place.source)
    return resolved


def _places(server: str, token: str) -> list[Target]:
    environment = os.environ.get(URL, ""), os.environ.get(TOKEN, "")
    return [
        Target(_tidy(server), token, "--server/--token"),
        # Separate entries, so that an address from a flag can be combined with a token from the environment, and vice versa.
        Target(_tidy(environment[0]), "", URL),
        Target("", environment[1], TOKEN),
        *(read(path) for path in files()),
    ]


def read(path: Path) -> Target:
    """The address and token in a file. Both are empty if the file does not exist."""
    try:
        content = json.loads(path.read_text())
        return Target(_tidy(str(content.get("url", ""))), str(content.get("token", "")), str(path))
    except FileNotFoundError:
        return Target()
    except (OSError, ValueError, AttributeError) as e:
        raise Problem(f"cannot read {path}: {e}", hint="correct or remove that file, then try again") from e


def save(target: Target) -> Path:
    """Saves the target. The file is created with permissions that let only its owner read it."""
    path = saved_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps({"url": target.url, "token": target.token}, indent=2) + "\n"
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text)
    draft.replace(path)
    return path


def _tidy(url: str) -> str:
    url = url.strip().rstrip("/")
    return url if not url or "://" in url else f"https://{url}"
