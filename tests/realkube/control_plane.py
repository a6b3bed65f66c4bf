"""A real control plane for tests: etcd and kube-apiserver as KUBEBUILDER_ASSETS offers them, a garbage collector on demand.

No scheduler and no kubelets: what a test wants of those it does itself, as a client.
"""

import base64
import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fleet.kube.resources import NAMESPACES
from fleet.member.client import Access, MemberClient
from fleet.member.errors import MemberError

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
WHY_NOT = "KUBEBUILDER_ASSETS is not set: no real kube-apiserver to run against"
needs_realkube = [pytest.mark.realkube, pytest.mark.skipif(not ASSETS, reason=WHY_NOT)]


class RealControlPlane:
    """One member's API in ``home``; `start` returns when it answers and its first namespaces are there."""

    token = "a-token-of-this-test"

    def __init__(self, home: Path) -> None:
        self._home = home
        self._running: list[subprocess.Popen[bytes]] = []
        self._store, self._peers, self._port = (_free_port() for _ in range(3))

    def start(self, *, seconds: float = 60.0) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        (self._home / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        _keys(self._home)
        self._run("etcd", *self._etcd_flags())
        self._run("kube-apiserver", *self._apiserver_flags())
        self._until(lambda: "END CERTIFICATE" in self.ca_pem, seconds)
        client = MemberClient(self.access())
        self._until(lambda: answers(lambda: client.get(NAMESPACES.path(name="default"))), seconds)
        self._until(lambda: answers(lambda: client.get_text("/readyz")), seconds)
        client.close()

    def start_controllers(self) -> None:
        """The garbage collector and the namespace controller, which a bare API server leaves to others."""
        kubeconfig = self._home / "kubeconfig"
        kubeconfig.write_text(json.dumps(self.kubeconfig()))
        self._run(
            "kube-controller-manager",
            *(f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--port=0", f"--secure-port={_free_port()}"),
            *(f"--cert-dir={self._home}/manager", "--controllers=garbagecollector,namespace"),
        )

    def stop(self) -> None:
        for process in reversed(self._running):
            process.kill()
            process.wait()

    def compact(self) -> None:
        """Makes etcd forget every earlier version of everything."""
        latest = self._etcd("range", {"key": "AA=="})["header"]["revision"]
        self._etcd("compaction", {"revision": latest, "physical": True})

    def _etcd(self, call: str, body: dict) -> dict:
        """etcd's own JSON door."""
        url = f"http://127.0.0.1:{self._store}/v3/kv/{call}"
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=10) as answer:
            return json.load(answer)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca_pem(self) -> str:
        """The certificate it signs for itself at its start."""
        path = self._home / "certs" / "apiserver.crt"
        return path.read_text() if path.exists() else ""

    def access(self) -> Access:
        return Access(self.url, ca_pem=self.ca_pem, token=self.token)

    def kubeconfig(self) -> dict:
        authority = base64.b64encode(self.ca_pem.encode()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
            "clusters": [{"name": "real", "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": "real", "user": {"token": self.token}}],
        }

    def _etcd_flags(self) -> list[str]:
        flags = ["--data-dir", str(self._home / "etcd"), "--unsafe-no-fsync"]
        for name, port in (
            ("listen-client", self._store),
            ("advertise-client", self._store),
            ("listen-peer", self._peers),
        ):
            flags += [f"--{name}-urls", f"http://127.0.0.1:{port}"]
        return flags

    def _apiserver_flags(self) -> list[str]:
        home = self._home
        return [
            *(f"--etcd-servers=http://127.0.0.1:{self._store}", "--bind-address=127.0.0.1"),
            *(f"--secure-port={self._port}", "--insecure-port=0", f"--cert-dir={home}/certs"),
            *(f"--token-auth-file={home}/tokens.csv", "--authorization-mode=RBAC"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={home}/sa.pub"),
            *(f"--service-account-signing-key-file={home}/sa.key", "--service-cluster-ip-range=10.0.0.0/24"),
            "--disable-admission-plugins=ServiceAccount",
        ]

    def _run(self, program: str, *flags: str) -> None:
        with (self._home / f"{program}.log").open("wb") as log:
            self._running.append(subprocess.Popen([f"{ASSETS}/{program}", *flags], stdout=log, stderr=log))

    def _until(self, true: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not true():
            for process in self._running:
                assert process.poll() is None, f"{process.args[0]} ended; see {self._home}"
            assert time.monotonic() < end, f"the control plane in {self._home} did not start in time"
            time.sleep(0.05)


def answers(call: Callable[[], object]) -> bool:
    try:
        call()
    except MemberError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _keys(home: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (home / "sa.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, plain))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    (home / "sa.pub").write_bytes(key.public_key().public_bytes(pem, public))
