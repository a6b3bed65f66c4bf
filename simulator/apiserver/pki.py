"""A certificate authority and a server certificate for one simulated member, made once and kept in its folder."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_YEARS = datetime.timedelta(days=3650)


def ensure(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Paths of the CA certificate, the server certificate and its key (0600), made on first use."""
    ca, certificate, key = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    if not (ca.exists() and certificate.exists() and key.exists()):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(name, ca, certificate, key)
    return ca, certificate, key


def _make(name: str, ca: Path, certificate: Path, key: Path) -> None:
    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    ca_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"convoy simulated member {name}")])
    authority = (
        _builder(ca_name, ca_name, ca_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names = [x509.DNSName("localhost"), x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    server = (
        _builder(server_name, ca_name, server_key, now)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key.touch(mode=0o600)
    key.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return builder.serial_number(x509.random_serial_number()).not_valid_before(now).not_valid_after(now + _YEARS)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
