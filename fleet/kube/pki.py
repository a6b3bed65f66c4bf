"""The certificate authority and the server certificate of one API server, created once and kept on disk.

kubectl sends a token only over TLS, so every server needs one. In production a proxy brings its own certificate.
"""

import datetime
import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = datetime.timedelta(days=3650)
_SKEW = datetime.timedelta(hours=1)
_ALWAYS = ("localhost", "127.0.0.1")
_DNS = re.compile(r"(\*\.)?[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*")


class BadName(ValueError):
    """A name that cannot be in a certificate. The error's text is the name."""


@dataclass(frozen=True, slots=True)
class Files:
    """The paths of a server's certificate, its key, and the authority that clients trust."""

    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Pki:
    """The generated files in one folder. Only their owner can read the key."""

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


def fault_of(files: Files) -> str:
    """Why a server cannot use these files. Empty if it can."""
    try:
        chain = x509.load_pem_x509_certificates(files.certificate.read_bytes())
        authorities = x509.load_pem_x509_certificates(files.authority.read_bytes())
        key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as e:
        return f"cannot be read: {e}"
    if chain[0].public_key() != key.public_key():
        return f"{files.key} is not the key of {files.certificate}"
    if not any(_has_issued(authority, certificate) for authority in authorities for certificate in chain):
        return f"{files.certificate} was not issued by an authority in {files.authority}"
    return ""


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def ensure(folder: Path, now: datetime.datetime, names: Sequence[str] = ()) -> Pki:
    """Returns the files. Creates them if they are missing, or if the certificate lacks one of the ``names``.

    A new certificate has a new authority, which older kubeconfigs do not trust. The authority is written last, so that the
    other files exist wherever it does. Raises BadName.
    """
    pki, wanted = Pki(folder), [_name(name) for name in (*_ALWAYS, *names)]
    if not (pki.authority.exists() and pki.certificate.exists() and pki.key.exists() and _has(pki, wanted)):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(pki, list(dict.fromkeys(wanted)), now)
    return pki


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        if _DNS.fullmatch(text):
            return x509.DNSName(text.lower())
    raise BadName(text)


def _has(pki: Pki, wanted: Sequence[x509.GeneralName]) -> bool:
    certificate = x509.load_pem_x509_certificate(pki.certificate.read_bytes())
    return set(wanted) <= set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)


def _make(pki: Pki, names: list[x509.GeneralName], now: datetime.datetime) -> None:
    """Creates an authority and a certificate that it signs. The authority's key is not stored, so it signs nothing else."""
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
    """Replaces the file atomically. It is created with permissions that let only its owner read it."""
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
