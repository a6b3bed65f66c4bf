"""The certificate of an API server: the names clients connect to, and when it is created again."""

import pytest
from cryptography import x509
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
