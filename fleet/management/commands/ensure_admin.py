"""The first administrator, made once from the password file that `up` wrote. An existing one is left as it is."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Makes the user admin, if there is none, with the password in CONVOY_HOME/admin-password."

    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model().objects
        if users.filter(username="admin").exists():
            self.stdout.write("admin is there already")
            return
        file = Path(settings.CONVOY_HOME) / "admin-password"
        password = file.read_text().strip() if file.is_file() else ""
        if not password:
            raise CommandError(f"Put a password into {file} first.")
        users.create_superuser("admin", "", password)
        self.stdout.write(f"admin was made; the password is in {file}")
