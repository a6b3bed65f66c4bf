"""A link that signs a user in once, for the person at the machine. Prints the path, to be put behind the address."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from fleet.db import clock
from fleet.management import auditing
from fleet.services.authorization import access, second_factors


class Command(BaseCommand):
    help = "Prints the path of a sign-in link that works once, within 15 minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", default="admin")
        parser.add_argument(
            "--reset-second-factor",
            action="store_true",
            help="first remove the user's second factor: for the last admin, whose app and recovery codes are lost",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}: make one with ensure_admin.")
        with auditing.asking("signin_link"):
            if options["reset_second_factor"]:
                second_factors.reset(user.username)
            path = access.make_signin_link(user, now=clock.now())
        self.stdout.write(path)
