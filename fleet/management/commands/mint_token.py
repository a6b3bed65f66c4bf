"""Makes a bearer token for somebody who can reach the database; for the bootstrap and for robots."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from fleet.errors import ConvoyError
from fleet.services import access


class Command(BaseCommand):
    help = "Print a new bearer token of a user; it is shown this once"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", default="admin")
        parser.add_argument("--name", required=True, help="what the token is for")
        parser.add_argument("--expires-in", type=int, metavar="S", help="seconds; without it, until revoked")

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"there is no user {options['user']}")
        life = None if options["expires_in"] is None else timedelta(seconds=options["expires_in"])
        try:
            _, text = access.mint(user, options["name"], life=life, now=timezone.now())
        except ConvoyError as e:
            raise CommandError(e.message) from e
        self.stdout.write(text)
