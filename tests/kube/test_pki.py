"""The certificate of an API server: the names clients connect to, and when it is created again."""

import ssl
from contextlib import suppress
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.kube import pki
from fleet.kube.pki import Files
from fleet.kubeapi import certificate
from fleet.services.operations import kube_authority


def names(files):
    served = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    alternatives = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in alternatives}


def test_it_names_this_host_and_what_is_asked_for(tmp_path):
    files = pki.ensure(tmp_path, timezone.now(), ["fleet.example.com", "10.0.0.7"])
    assert names(files) == {"localhost", "127.0.0.1", "fleet.example.com", "10.0.0.7"}


def test_it_is_created_again_for_a_new_name_only(tmp_path):
    first = pki.ensure(tmp_path, timezone.now(), ["a.example"]).certificate.read_bytes()
    assert pki.ensure(tmp_path, timezone.now()).certificate.read_bytes() == first
    assert names(pki.ensure(tmp_path, timezone.now(), ["b.example"])) == {"localhost", "127.0.0.1", "b.example"}


def test_a_name_may_have_63_letters(tmp_path):
    assert "n" * 63 in names(pki.ensure(tmp_path, timezone.now(), ["n" * 63]))


def test_the_key_is_readable_by_its_owner_only(tmp_path):
    assert pki.ensure(tmp_path, timezone.now()).key.stat().st_mode & 0o077 == 0


def test_it_refuses_a_name_no_certificate_can_have(tmp_path, settings):
    settings.CONVOY_HOME, settings.CONVOY_KUBE_NAMES = tmp_path, ["https://fleet"]
    with pytest.raises(InvalidInput, match="CONVOY_KUBE_NAMES"):
        certificate.ensure(timezone.now())
    assert not list(tmp_path.iterdir())


def files_of(folder, *, key_of=None):
    made = pki.ensure(folder, timezone.now())
    return Files(made.authority, made.certificate, (key_of or made).key)


def test_replicas_are_served_with_the_files_of_one_authority_and_make_none(tmp_path, settings):
    shared = files_of(tmp_path / "shared")
    for replica in ("a", "b"):
        settings.CONVOY_HOME, settings.CONVOY_KUBE_TLS = tmp_path / replica, shared
        settings.CONVOY_KUBE_URL = "https://fleet.example.com"
        assert certificate.ensure(timezone.now()) == shared and not settings.CONVOY_HOME.exists()
        assert kube_authority.read() == shared.authority.read_text()


def test_it_refuses_files_that_do_not_belong_together(tmp_path, settings):
    good, other = files_of(tmp_path / "good"), files_of(tmp_path / "other")
    for files, fault in (
        (Files(good.authority, good.certificate, other.key), "is not the key of"),
        (Files(other.authority, good.certificate, good.key), "was not issued by"),
        (Files(good.authority, tmp_path / "absent", good.key), "cannot be read"),
        (Files(good.key, good.certificate, good.key), "cannot be read"),
    ):
        settings.CONVOY_KUBE_TLS = files
        with pytest.raises(InvalidInput, match=f"CONVOY_KUBE_CERT_FILE: .*{fault}"):
            certificate.ensure(timezone.now())


def shake_hands(server: ssl.SSLContext, authority: str, name: str) -> str:
    """In memory, as a client that trusts the authority alone and connects to that name; returns the certificate's subject."""
    trusting = ssl.create_default_context(cadata=authority)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=name)
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, serving, client, serving, client):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return dict(pair[0] for pair in (client.getpeercert() or {})["subject"])["commonName"]


def test_a_kubeconfig_is_good_for_every_replica_with_a_certificate_of_one_authority_also_after_a_restart(
    tmp_path, settings
):
    """As an operator's authority issues one for each replica; the kubeconfig has the authority that either replica reads."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = issued("the company", None, authority_key, authority_key)
    shared = tmp_path / "ca.pem"
    shared.write_bytes(authority.public_bytes(Encoding.PEM))
    settings.CONVOY_KUBE_URL = "https://fleet.example.com"
    kubeconfigs, contexts = set(), []
    for replica in ("a", "b", "a"):
        files = Files(shared, tmp_path / f"{replica}.pem", tmp_path / f"{replica}.key")
        if not files.key.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            files.certificate.write_bytes(issued(replica, authority, key, authority_key).public_bytes(Encoding.PEM))
            pki.write_private(files.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        settings.CONVOY_KUBE_TLS, settings.CONVOY_HOME = files, tmp_path / "home"
        served = certificate.ensure(timezone.now())
        kubeconfigs.add(kube_authority.read())
        contexts.append(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        contexts[-1].load_cert_chain(served.certificate, served.key)
    [trusted] = kubeconfigs
    assert [shake_hands(each, trusted, "fleet.example.com") for each in contexts] == ["a", "b", "a"]
    stranger = pki.ensure(tmp_path / "other", timezone.now(), ["fleet.example.com"])
    contexts[0].load_cert_chain(stranger.certificate, stranger.key)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(contexts[0], trusted, "fleet.example.com")


def issued(name, authority, key, authority_key):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = timezone.now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("fleet.example.com")]), critical=False)
        .sign(authority_key, SHA256())
    )
