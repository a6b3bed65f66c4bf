"""The certificate of the Kubernetes-style door: names it is reached by, and when it is made anew."""

import pytest
from cryptography import x509
from django.utils import timezone

from fleet.errors import InvalidInput
from fleet.kubeapi import pki


def names(made):
    certificate = x509.load_pem_x509_certificate(made.certificate.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(each.value) for each in found}


def test_it_names_this_host_and_what_is_asked_for(tmp_path):
    made = pki.ensure(tmp_path, timezone.now(), ["fleet.example.com", "10.0.0.7"])
    assert names(made) == {"localhost", "127.0.0.1", "fleet.example.com", "10.0.0.7"}


def test_it_is_made_anew_for_a_new_name_only(tmp_path):
    first = pki.ensure(tmp_path, timezone.now(), ["a.example"]).certificate.read_bytes()
    assert pki.ensure(tmp_path, timezone.now()).certificate.read_bytes() == first
    assert names(pki.ensure(tmp_path, timezone.now(), ["b.example"])) == {"localhost", "127.0.0.1", "b.example"}


def test_it_refuses_what_is_no_name(tmp_path):
    with pytest.raises(InvalidInput, match="CONVOY_KUBE_NAMES"):
        pki.ensure(tmp_path, timezone.now(), ["https://fleet"])
    assert not list(tmp_path.iterdir())
