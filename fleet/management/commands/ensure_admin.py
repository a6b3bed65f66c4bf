"""The first administrator, made once. An existing one is left as it is, whatever password it has by now.

The password lies in the home folder, readable by its owner only; it is generated here unless the file exists already.
"""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from fleet.management import auditing
from fleet.services.authorization import grants


class Command(BaseCommand):
    help = "Makes the user admin, if there is none, with the password in CONVOY_HOME/admin-password."

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model().objects
        if users.filter(username="admin").exists():
            self.stdout.write("admin is there already")
            return
        file = Path(settings.CONVOY_HOME) / "admin-password"
        password = kept_password(file)
        if not password:
            raise CommandError(f"{file} is empty: put a password into it, or remove it.")
        with auditing.asking("ensure_admin"), transaction.atomic():
            users.create_superuser("admin", "", password)
            grants.noted_user("create", "admin")
        self.stdout.write(f"admin was made; the password is in {file}")


def kept_password(file: Path) -> str:
    """The file's content; created with a random password, readable by its owner only, when it is not there."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text().strip()
    password = secrets.token_urlsafe(24)
    with os.fdopen(handle, "w") as out:
        out.write(password + "\n")
    return password
