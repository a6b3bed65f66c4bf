"""Makes a link that signs a browser in once, for somebody who can reach the database."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from fleet.services import access


class Command(BaseCommand):
    help = "Print a path that signs a user in once, within a quarter of an hour"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", default="admin")

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"there is no active user {options['user']}")
        self.stdout.write(access.make_signin_link(user, now=timezone.now()))
