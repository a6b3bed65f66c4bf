"""The folder that holds the product's state, and the few choices kept in it between runs.

``settings.env`` keeps what one run chose and the next must find again: ports, the broker's password, what the fleet is
made of. The admin's password is made here; keys are the settings module's own business.
"""

import os
import secrets
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = ("logs", "run", "pki")


class Home:
    """Paths and kept choices of one ``CONVOY_HOME``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run = path / "run"
        self.logs = path / "logs"
        self.settings_file = path / "settings.env"
        self.password_file = path / "admin-password"
        self.revision_file = self.run / "revision"
        self.cli_file = path / "cli.json"
        self.state_file = self.run / "supervisor.json"
        self.supervisor_lock = self.run / "supervisor.lock"
        self.up_lock = self.run / "up.lock"

    @classmethod
    def here(cls) -> "Home":
        return cls(Path(os.environ.get("CONVOY_HOME") or ROOT / ".convoy").absolute())

    def make(self) -> None:
        for folder in (self.path, *(self.path / part for part in PARTS)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        if not self.password_file.exists():
            write_private(self.password_file, secrets.token_urlsafe(15) + "\n")

    def settings(self) -> dict[str, str]:
        if not self.settings_file.exists():
            return {}
        lines = (line.partition("=") for line in self.settings_file.read_text().splitlines())
        return {name.strip(): value.strip() for name, equals, value in lines if equals and not name.startswith("#")}

    def keep(self, **choices: str) -> dict[str, str]:
        """Writes choices down next to those already kept, and returns them all."""
        kept = self.settings() | choices
        if kept != self.settings():
            write_private(self.settings_file, "".join(f"{name}={value}\n" for name, value in sorted(kept.items())))
        return kept


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, and only for the owner's eyes."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as handle:
        handle.write(text)
    draft.replace(path)
