"""Settings of the sign-in with accounts of the company: read whole, or refused with the variable, its value and the remedy."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from deploy.config import oidc
from fleet.core.security.oidc import Assignment, GroupRole, OidcSettings
from fleet.models import Grant

SET = {"CONVOY_OIDC_ISSUER": "https://id.acme.example/realm", "CONVOY_OIDC_CLIENT_ID": "convoy"}


def test_it_is_off_without_an_issuer():
    assert oidc.settings({}) == OidcSettings() and not oidc.settings({}).is_on


def test_it_reads_all_of_them_and_the_secret_from_a_file(tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    groups = '{"cn=ops,ou=groups": ["fleet-admin"], "ml": ["editor:vision", "viewer", "lead:root/vision"]}'
    settings = oidc.settings(
        SET
        | {
            "CONVOY_OIDC_CLIENT_SECRET_FILE": f"{tmp_path}/secret",
            "CONVOY_OIDC_SCOPES": "openid, groups",
            "CONVOY_OIDC_GROUPS": groups,
            "CONVOY_OIDC_USERNAME_CLAIM": "email",
        }
    )
    assert (settings.client_secret, settings.scopes, settings.username_claim) == (
        "s3cret",
        ("openid", "groups"),
        "email",
    )
    assert settings.name == "id.acme.example" and "s3cret" not in repr(settings)
    assert settings.assignments(["ml", "other"]) == {
        Assignment("editor", "vision"), Assignment("viewer"), Assignment("lead", "root/vision")
    }  # fmt: skip


def test_it_knows_every_role():
    assert {role.value for role in GroupRole} == {*Grant.Role.values, "lead"}


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({"CONVOY_OIDC_CLIENT_ID": "convoy"}, "CONVOY_OIDC_CLIENT_ID: set CONVOY_OIDC_ISSUER as well"),
        ({"CONVOY_OIDC_ISSUER": SET["CONVOY_OIDC_ISSUER"]}, "CONVOY_OIDC_CLIENT_ID is not set: set the id"),
        ({**SET, "CONVOY_OIDC_ISSUER": "http://id.acme.example"}, "'http://id.acme.example' is not an https address"),
        ({**SET, "CONVOY_OIDC_ISSUER": "id.acme.example"}, "is not an https address"),
        ({**SET, "CONVOY_OIDC_ISSUER": "https://[::1"}, "is no address"),
        ({**SET, "CONVOY_OIDC_SCOPES": "profile"}, "CONVOY_OIDC_SCOPES='profile' is without openid: add it"),
        ({**SET, "CONVOY_OIDC_GROUPS": "ml=editor"}, "CONVOY_OIDC_GROUPS is not JSON"),
        ({**SET, "CONVOY_OIDC_GROUPS": '["ml"]'}, "not an object of lists"),
        ({**SET, "CONVOY_OIDC_GROUPS": '{"ml": "editor"}'}, "not an object of lists"),
        ({**SET, "CONVOY_OIDC_GROUPS": '{"ml": ["owner"]}'}, "'owner' of group 'ml' names no role: use one of"),
        ({**SET, "CONVOY_OIDC_GROUPS": '{"ml": [1]}'}, "1 of group 'ml' names no role"),
        ({**SET, "CONVOY_OIDC_GROUPS": '{"ml": ["fleet-admin:vision"]}'}, "leave the namespace out"),
        ({**SET, "CONVOY_OIDC_GROUPS": '{"ml": ["editor:"]}'}, "the namespace"),
        ({**SET, "CONVOY_OIDC_GROUPS": '{"ml": ["editor:Vision"]}'}, "the namespace"),
        ({**SET, "CONVOY_OIDC_GROUPS": '{"ml": ["lead:vision"]}'}, "names no node"),
        (
            {**SET, "CONVOY_OIDC_CLIENT_SECRET_FILE": "/nowhere"},
            "CONVOY_OIDC_CLIENT_SECRET_FILE=/nowhere cannot be read",
        ),
    ],
    ids=str,
)
def test_it_refuses_what_makes_no_sense(environ, fault):
    with pytest.raises(ImproperlyConfigured) as refused:
        oidc.settings(environ)
    assert fault in str(refused.value)


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:9000/o", "http://localhost:9000", "http://[::1]:9000"])
def test_it_allows_plain_http_to_this_machine(issuer):
    assert oidc.settings({**SET, "CONVOY_OIDC_ISSUER": issuer}).issuer == issuer
