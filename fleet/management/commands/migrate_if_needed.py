"""Migrates the database where a migration of the code is missing; a start with one that is up to date waits for no plan."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from fleet.db import migrated


class Command(BaseCommand):
    help = "Migrates the database, if any migration of this version is missing from it."
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        if migrated.is_complete():
            self.stdout.write("The database has every migration.")
        else:
            call_command("migrate", interactive=False, stdout=self.stdout)
