"""The access of a program that runs in a pod of the member itself: the service account that its kubelet mounts."""

from collections.abc import Mapping
from pathlib import Path

from fleet.member.client import Access

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def access(environ: Mapping[str, str]) -> Access:
    """Raises ValueError outside of a pod. The token is renewed in its file: read it again every now and then."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ValueError("not in a pod: give --kubeconfig")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(server, ca_pem=(_ACCOUNT / "ca.crt").read_text(), token=(_ACCOUNT / "token").read_text().strip())
