"""What Convoy keeps in its home folder on disk: generated keys, and the folders of the broker that needs no server."""

import os
import secrets
from pathlib import Path

from cryptography.fernet import Fernet


def secret(home: Path, name: str) -> str:
    """The secret of that name, made on first use; only the owner can read it."""
    return _kept(home, name, secrets.token_urlsafe(48))


def encryption_key(home: Path, name: str) -> str:
    return _kept(home, name, Fernet.generate_key().decode())


def filesystem_broker(home: Path) -> dict[str, object]:
    """Transport options of Celery's file-system broker; its default polling interval would cost a second a task."""
    folder = home / "broker"
    for part in ("messages", "processed", "control"):
        (folder / part).mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "processed_folder": str(folder / "processed"),
        "control_folder": str(folder / "control"),
        "polling_interval": 0.02,
    }


def _kept(home: Path, name: str, fresh: str) -> str:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / name
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(fd, "w") as handle:
        handle.write(fresh)
    return fresh
