"""The server certificate of the fleet's Kubernetes-style API: of the operator's authority, or made for the names it is given.

Several replicas are one server to kubectl only if one authority has issued the certificates of all of them, so those are files.
"""

from datetime import datetime

from django.conf import settings

from fleet.errors import invalid
from fleet.kube import pki
from fleet.kube.pki import Files, Pki


def ensure(now: datetime) -> Files | Pki:
    """Raises InvalidInput for settings that name no certificate, or are no list of names and addresses."""
    if (files := settings.CONVOY_KUBE_TLS) is not None:
        if fault := pki.fault_of(files):
            raise invalid("CONVOY_KUBE_CERT_FILE", fault)
        return files
    try:
        return pki.ensure(settings.CONVOY_HOME / "pki", now, settings.CONVOY_KUBE_NAMES)
    except pki.BadName as e:
        message = f"must be host names and addresses with commas between them, not {str(e)!r}"
        raise invalid("CONVOY_KUBE_NAMES", message) from e
