"""The server certificate of the fleet's Kubernetes-style API, for the names in its settings."""

from datetime import datetime

from django.conf import settings

from fleet.errors import invalid
from fleet.kube import pki
from fleet.kube.pki import Pki


def ensure(now: datetime) -> Pki:
    """Raises InvalidInput for a setting that is no list of names and addresses."""
    try:
        return pki.ensure(settings.CONVOY_HOME / "pki", now, settings.CONVOY_KUBE_NAMES)
    except pki.BadName as e:
        message = f"must be host names and addresses with commas between them, not {str(e)!r}"
        raise invalid("CONVOY_KUBE_NAMES", message) from e
