"""The authority that kubectl has to trust, for kubeconfigs; the certificates themselves are the Kubernetes-style API's own."""

from django.conf import settings


def read() -> str:
    """As PEM; empty: a public authority, or none has been made here yet."""
    if settings.CONVOY_KUBE_TLS is not None:
        return str(settings.CONVOY_KUBE_TLS.authority.read_text())
    generated = settings.CONVOY_HOME / "pki" / "ca.pem"
    return str(generated.read_text()) if generated.is_file() and not settings.CONVOY_KUBE_URL else ""
