"""The Secret with the SSH key that lets the launcher of an elastic job reach its workers. Every job has a key of its own.

The names of its keys are those that the operator mounts as ``/root/.ssh``.
"""

import base64

from frontend.cli.submit.pods import Manifest

_BITS = 2048
_CONFIG = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"


def secret(name: str, namespace: str) -> Manifest:
    """A Secret with a new key. cryptography is imported here, so that no other command waits for it."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    files = {"config": _CONFIG.encode(), "id_rsa": private, "id_rsa.pub": public}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {file: base64.b64encode(content).decode() for file, content in files.items()},
    }
