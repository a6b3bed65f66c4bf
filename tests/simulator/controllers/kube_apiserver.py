"""A bare kube-apiserver with its etcd, as KUBEBUILDER_ASSETS offers them: no scheduler, no controllers, no kubelets."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fleet.member.client import Access

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
TOKEN = "a-token-of-this-test"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def kube_apiserver(home: Path) -> Iterator[Access]:
    """Its address and credentials; the caller waits until it answers."""
    store, peers, port = (free_port() for _ in range(3))
    (home / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
    keys(home)
    etcd = [f"{ASSETS}/etcd", "--data-dir", str(home / "etcd"), "--unsafe-no-fsync"]
    for name, number in (("listen-client", store), ("advertise-client", store), ("listen-peer", peers)):
        etcd += [f"--{name}-urls", f"http://127.0.0.1:{number}"]
    server = [
        f"{ASSETS}/kube-apiserver",
        *(f"--etcd-servers=http://127.0.0.1:{store}", "--bind-address=127.0.0.1", f"--secure-port={port}"),
        *("--insecure-port=0", f"--cert-dir={home}/certs", f"--token-auth-file={home}/tokens.csv"),
        *("--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc"),
        *(f"--service-account-key-file={home}/sa.pub", f"--service-account-signing-key-file={home}/sa.key"),
        *("--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount"),
    ]
    with (home / "log").open("wb") as log:
        running = [subprocess.Popen(command, stdout=log, stderr=log) for command in (etcd, server)]
        try:
            yield Access(f"https://127.0.0.1:{port}", ca_pem=certificate(home, running[1]), token=TOKEN)
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()


def keys(home: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (home / "sa.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, plain))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    (home / "sa.pub").write_bytes(key.public_key().public_bytes(pem, public))


def certificate(home: Path, server: subprocess.Popen[bytes]) -> str:
    """The certificate it signs for itself at its start."""
    path = home / "certs" / "apiserver.crt"
    while not path.exists() or "END CERTIFICATE" not in path.read_text():
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"kube-apiserver ended: {(home / 'log').read_text()[-2000:]}")
    return path.read_text()
