"""A real control plane for tests: etcd and kube-apiserver as KUBEBUILDER_ASSETS offers them, a garbage collector on demand.

No scheduler and no kubelets: what a test wants of those it does itself, as a client. Several API servers may share one etcd.
"""

import base64
import json
import os
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
from tests.support.free_ports import free_port

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
WHY_NOT = "KUBEBUILDER_ASSETS is not set: no real kube-apiserver to run against"
START_S = 300.0
"""A program that ends is noticed at once. This bounds only one that hangs: beside much other work a start takes minutes."""
needs_realkube = [pytest.mark.realkube, pytest.mark.skipif(not ASSETS, reason=WHY_NOT)]


class Programs:
    """Processes of one home, each with a log there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, program: str, *flags: str) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / f"{program}.log").open("ab") as log:
            self._running[program] = subprocess.Popen([f"{ASSETS}/{program}", *flags], stdout=log, stderr=log)

    def kill(self, program: str) -> None:
        process = self._running.pop(program)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for program in reversed(list(self._running)):
            self.kill(program)

    def until(self, true: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not true():
            for process in self._running.values():
                assert process.poll() is None, f"{process.args[0]} ended; see {self.home}"
            assert time.monotonic() < end, f"the control plane in {self.home} did not start in time"
            time.sleep(0.05)


class Etcd:
    """Runs from `start` to `stop`; forgets nothing but by `compact`."""

    def __init__(self, home: Path) -> None:
        self._programs = Programs(home)
        self._port, self._peers = free_port(), free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        urls = (("listen-client", self._port), ("advertise-client", self._port), ("listen-peer", self._peers))
        flags = [part for name, port in urls for part in (f"--{name}-urls", f"http://127.0.0.1:{port}")]
        self._programs.run("etcd", "--data-dir", str(self._programs.home / "etcd"), "--unsafe-no-fsync", *flags)

    def stop(self) -> None:
        self._programs.stop()

    def compact(self) -> None:
        """Forgets every earlier version of everything."""
        latest = self._call("range", {"key": "AA=="})["header"]["revision"]
        self._call("compaction", {"revision": latest, "physical": True})

    def _call(self, call: str, body: dict) -> dict:
        url = f"{self.url}/v3/kv/{call}"
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=60) as answer:
            return json.load(answer)


class RealControlPlane:
    """One member's API in ``home``; `start` returns when it answers and its first namespaces are there."""

    token = "a-token-of-this-test"

    def __init__(self, home: Path, etcd: Etcd | None = None, *flags: str) -> None:
        """``etcd``: a running one, shared with others; without it there is one more. ``flags``: of the API server."""
        self._home, self._flags = home, flags
        self._programs = Programs(home)
        self.etcd, self._has_own_etcd = etcd or Etcd(home), etcd is None
        self.port = free_port()

    def start(self, *, seconds: float = START_S) -> None:
        self._home.mkdir(parents=True, exist_ok=True)
        (self._home / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        _keys(self._home)
        if self._has_own_etcd:
            self.etcd.start()
        self.start_api_server(seconds=seconds)

    def start_api_server(self, *, seconds: float = START_S) -> None:
        """For the first time, or again after `kill_api_server`: on the same port, with the same objects."""
        self._programs.run("kube-apiserver", *self._apiserver_flags())
        self._programs.until(lambda: "END CERTIFICATE" in self.ca_pem, seconds)
        client = MemberClient(self.access())
        self._programs.until(lambda: answers(lambda: client.get(NAMESPACES.path(name="default"))), seconds)
        self._programs.until(lambda: answers(lambda: client.get_text("/readyz")), seconds)
        client.close()

    def kill_api_server(self) -> None:
        self._programs.kill("kube-apiserver")

    def start_controllers(self) -> None:
        """The garbage collector and the namespace controller, which a bare API server leaves to others."""
        kubeconfig = self._home / "kubeconfig"
        kubeconfig.write_text(json.dumps(self.kubeconfig()))
        self._programs.run(
            "kube-controller-manager",
            *(f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--port=0", f"--secure-port={free_port()}"),
            *(f"--cert-dir={self._home}/manager", "--controllers=garbagecollector,namespace"),
        )

    def stop(self) -> None:
        self._programs.stop()
        if self._has_own_etcd:
            self.etcd.stop()

    def compact(self) -> None:
        """Makes etcd forget every earlier version of everything."""
        self.etcd.compact()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_pem(self) -> str:
        """The certificate it signs for itself at its start."""
        path = self._home / "certs" / "apiserver.crt"
        return path.read_text() if path.exists() else ""

    def access(self) -> Access:
        return Access(self.url, ca_pem=self.ca_pem, token=self.token)

    def kubeconfig(self, port: int = 0) -> dict:
        """``port``: another one of 127.0.0.1 that leads to it."""
        server = f"https://127.0.0.1:{port or self.port}"
        authority = base64.b64encode(self.ca_pem.encode()).decode()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real"}}],
            "clusters": [{"name": "real", "cluster": {"server": server, "certificate-authority-data": authority}}],
            "users": [{"name": "real", "user": {"token": self.token}}],
        }

    def _apiserver_flags(self) -> list[str]:
        home = self._home
        return [
            *(f"--etcd-servers={self.etcd.url}", f"--etcd-prefix=/{self._home.name}", "--bind-address=127.0.0.1"),
            *(f"--secure-port={self.port}", "--insecure-port=0", f"--cert-dir={home}/certs"),
            *(f"--token-auth-file={home}/tokens.csv", "--authorization-mode=RBAC"),
            *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={home}/sa.pub"),
            *(f"--service-account-signing-key-file={home}/sa.key", "--service-cluster-ip-range=10.0.0.0/24"),
            *("--disable-admission-plugins=ServiceAccount", *self._flags),
        ]


def answers(call: Callable[[], object]) -> bool:
    try:
        call()
    except MemberError:
        return False
    return True


def _keys(home: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (home / "sa.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, plain))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    (home / "sa.pub").write_bytes(key.public_key().public_bytes(pem, public))
