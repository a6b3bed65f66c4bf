"""Makes sure there is somebody who may do everything: the user ``admin``, with a password only the home's owner can read.

The password is made here on first use and lies in the home folder. Running it again repairs a changed password file.
"""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand

NAME = "admin"
FILE = "admin-password"


class Command(BaseCommand):
    help = "Create or repair the superuser admin; its password is in $CONVOY_HOME/admin-password"

    def handle(self, *args: Any, **options: Any) -> None:
        file = Path(settings.CONVOY_HOME) / FILE
        password = kept_password(file)
        user, made = get_user_model().objects.get_or_create(username=NAME)
        user.is_staff = user.is_superuser = user.is_active = True
        if not user.check_password(password):
            user.set_password(password)
        user.save()
        self.stdout.write(f"{NAME} {'created' if made else 'is there'}; the password is in {file}")


def kept_password(file: Path) -> str:
    """The file's content; made, and readable by nobody else, when it is not there."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text().strip()
    password = secrets.token_urlsafe(24)
    with os.fdopen(handle, "w") as out:
        out.write(password + "\n")
    return password
