"""The certificate authority of this installation and the server certificate of this door, made once and kept on disk.

kubectl sends a token only over TLS, so there is no door without one. In production a proxy brings its own certificate.
"""

import datetime
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = datetime.timedelta(days=3650)
_SKEW = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pki:
    """Where the files are; the key can be read by its owner only."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        return self.folder / "server.pem"

    @property
    def key(self) -> Path:
        return self.folder / "server.key"


def ensure(folder: Path, now: datetime.datetime) -> Pki:
    """The files, made on first use. The authority is written last: who finds it finds the others."""
    pki = Pki(folder)
    if not (pki.authority.exists() and pki.certificate.exists() and pki.key.exists()):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(pki, now)
    return pki


def _make(pki: Pki, now: datetime.datetime) -> None:
    """The authority's own key is forgotten at once: nothing else is ever signed with it."""
    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "convoy")])
    authority = (
        _begun(authority_name, authority_name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "convoy-kube")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = (
        _begun(server_name, authority_name, server_key, now)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    key = server_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    write_private(pki.key, key)
    pki.certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    pki.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))


def write_private(path: Path, content: bytes) -> None:
    """Whole or not at all, and readable by its owner only from the first byte on."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
        handle.write(content)
    fresh.replace(path)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - _SKEW).not_valid_after(now + _LIFE)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
