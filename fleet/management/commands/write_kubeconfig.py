"""A kubeconfig for this machine's kubectl: the server, the authority to trust, and a token of one user."""

import base64
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from fleet.errors import ConvoyError
from fleet.kube.pki import write_private
from fleet.kubeapi import certificate
from fleet.management import auditing
from fleet.services.authorization import access


class Command(BaseCommand):
    help = "Writes a kubeconfig with a token of its own; a token that is in the file already and still good is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", default="admin")
        parser.add_argument("--server", required=True, help="such as https://127.0.0.1:8443")
        parser.add_argument("--file", type=Path, default=None, help="kubeconfig in Convoy's home when not given")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"] or settings.CONVOY_HOME / "kubeconfig"
        user = get_user_model().objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        now = timezone.now()
        token = _kept(path, user, now)
        if not token:
            with auditing.asking("write_kubeconfig"):
                _, token = access.mint(user, "kubeconfig", life=None, now=now)
        authority = certificate.ensure(now).authority.read_bytes()
        document = kubeconfig(options["server"], authority, user.get_username(), token)
        write_private(path, yaml.safe_dump(document, sort_keys=False).encode())
        self.stdout.write(str(path))


def kubeconfig(server: str, authority: bytes, user: str, token: str) -> dict[str, Any]:
    trusted = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "convoy", "cluster": {"server": server, "certificate-authority-data": trusted}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "convoy", "context": {"cluster": "convoy", "user": user, "namespace": "default"}}],
        "current-context": "convoy",
    }


def _kept(path: Path, user: Any, now: Any) -> str:
    """The token the file has, if it is this user's and still good."""
    try:
        token = str(yaml.safe_load(path.read_text())["users"][0]["user"]["token"])
        return token if access.verify(token, now=now).user.pk == user.pk else ""
    except (OSError, yaml.YAMLError, KeyError, IndexError, TypeError, ConvoyError):
        return ""
