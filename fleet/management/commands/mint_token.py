"""A bearer token for a script, from the machine itself. The token is the last word printed, and printed this once."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from fleet.core.security import token_scopes
from fleet.db import clock
from fleet.errors import InvalidInput
from fleet.management import auditing
from fleet.services.authorization import access


class Command(BaseCommand):
    help = "Makes a bearer token for a user and prints it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", default="admin")
        parser.add_argument("--name", required=True, help="what it is for")
        parser.add_argument("--expires-in-s", type=int, default=None, help="else CONVOY_TOKEN_MAX_S")
        for field in ("verb", "kind", "namespace"):
            parser.add_argument(
                f"--{field}", action="append", default=[], help="the token is for these only; repeatable"
            )

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        seconds = options["expires_in_s"]
        life = None if seconds is None else timedelta(seconds=seconds)
        limits = {f"{field}s": options[field] for field in ("verb", "kind", "namespace") if options[field]}
        if faults := [f"{field} {detail}" for field, detail in token_scopes.faults(limits)]:
            raise CommandError("; ".join(faults))
        scope = token_scopes.from_json(limits)
        try:
            with auditing.asking("mint_token"):
                _, text = access.mint(user, options["name"], life=life, now=clock.now(), scope=scope)
        except InvalidInput as e:
            raise CommandError(e.message) from e
        self.stdout.write(text)
