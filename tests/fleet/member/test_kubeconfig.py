"""Kubeconfigs that are taken, and each thing that is refused by name."""

import base64
import copy

import pytest
import yaml

from fleet.errors import InvalidInput, MalformedInput, TooLarge
from fleet.member import kubeconfig

PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n").decode()
GOOD = {
    "current-context": "north",
    "contexts": [{"name": "north", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://api.north:6443", "certificate-authority-data": PEM}}],
    "users": [{"name": "u", "user": {"token": "secret"}}],
}


def text(cluster=None, user=None, **top):
    config = copy.deepcopy(GOOD) | top
    config["clusters"][0]["cluster"] |= cluster or {}
    config["users"][0]["user"] |= user or {}
    return yaml.safe_dump(config)


def test_it_reads_server_ca_and_token():
    access = kubeconfig.parse(text(cluster={"tls-server-name": "api"}))
    assert (access.server, access.token, access.tls_server_name) == ("https://api.north:6443", "secret", "api")
    assert access.ca_pem.startswith("-----BEGIN CERTIFICATE")
    assert "secret" not in repr(access)


def test_it_reads_a_client_certificate_of_a_named_context():
    user = {"token": None, "client-certificate-data": PEM, "client-key-data": PEM}
    access = kubeconfig.parse(text(user=user, **{"current-context": ""}), "north")
    assert access.client_cert_pem and access.client_key_pem and not access.token


@pytest.mark.parametrize(
    ("cluster", "user", "field"),
    [
        ({}, {"exec": {"command": "aws"}}, "users[0].user.exec"),
        ({}, {"auth-provider": {"name": "gcp"}}, "users[0].user.auth-provider"),
        ({}, {"tokenFile": "/etc/passwd"}, "users[0].user.tokenFile"),
        ({}, {"client-key": "/etc/shadow"}, "users[0].user.client-key"),
        ({}, {"client-certificate": "c.pem"}, "users[0].user.client-certificate"),
        ({}, {"username": "admin", "password": "x"}, "users[0].user.username"),
        ({}, {"as": "root"}, "users[0].user.as"),
        ({}, {"token": "a\r\nX-Evil: b"}, "users[0].user.token"),
        ({}, {"token": ""}, "users[0].user"),
        ({}, {"client-certificate-data": PEM}, "users[0].user.client-key-data"),
        ({"certificate-authority": "/etc/ca"}, {}, "clusters[0].cluster.certificate-authority"),
        ({"certificate-authority-data": "%%%"}, {}, "clusters[0].cluster.certificate-authority-data"),
        ({"insecure-skip-tls-verify": True}, {}, "clusters[0].cluster.insecure-skip-tls-verify"),
        ({"proxy-url": "http://proxy"}, {}, "clusters[0].cluster.proxy-url"),
        ({"server": "http://api.north"}, {}, "clusters[0].cluster.server"),
        ({"server": "https://me:pw@api.north"}, {}, "clusters[0].cluster.server"),
        ({"server": "https://api.north:99999"}, {}, "clusters[0].cluster.server"),
        ({"server": "https://api north"}, {}, "clusters[0].cluster.server"),
        ({"server": ["x"]}, {}, "clusters[0].cluster.server"),
    ],
)
def test_it_refuses_and_names_the_field(cluster, user, field):
    with pytest.raises(InvalidInput) as refused:
        kubeconfig.parse(text(cluster, user))
    assert refused.value.faults[0].field == f"kubeconfig.{field}"


@pytest.mark.parametrize(
    "broken",
    ["{", "a: b: c", "[]", "", "&a [*a]", "\x00", "!!python/object/apply:os.system ['id']", "a: " + "[" * 9000],
)
def test_it_refuses_what_cannot_be_read(broken):
    with pytest.raises(MalformedInput):
        kubeconfig.parse(broken)


def test_it_refuses_a_context_that_is_not_there_and_names_those_that_are():
    with pytest.raises(InvalidInput, match="'south'; it has: north"):
        kubeconfig.parse(text(), "south")


def test_it_refuses_a_kubeconfig_of_a_size_none_has():
    with pytest.raises(TooLarge):
        kubeconfig.parse("#" * (kubeconfig.LIMIT + 1))
