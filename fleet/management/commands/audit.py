"""The audit from the machine itself: whether its chain is whole, and all of it as lines of JSON."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from fleet.db import clock
from fleet.services.auditing import audit_chain, audit_sinks

_AT_ONCE = 500


class Command(BaseCommand):
    help = "Verifies the hash chain of the audit, or exports its lines as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["verify", "export"])
        parser.add_argument("--after", type=int, default=0, help="export: only lines behind this place in the chain")

    def handle(self, *args: Any, **options: Any) -> None:
        audit_chain.link_new(clock.now())
        if options["action"] == "export":
            return self._export(options["after"])
        result = audit_chain.verify()
        if result.fault:
            raise CommandError(f"The audit was tampered with: {result.fault}.")
        self.stdout.write(f"The audit is whole: {result.lines} lines, the last is {result.last}.")
        return None

    def _export(self, seq: int) -> None:
        while rows := audit_chain.after(seq, _AT_ONCE):
            for row in rows:
                self.stdout.write(audit_sinks.line(row))
            seq = rows[-1].seq or seq
