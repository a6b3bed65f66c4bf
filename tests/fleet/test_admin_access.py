"""The admin as a door like the others: roles decide, not Django's permissions; what is of other tenants is not there."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from fleet.models import Event, Grant, Pod, Token
from fleet.services.authorization import access
from jobs.models import Attempt, Binding, Dependent, Job, Policy, Work
from tests.fleet.builders import fill
from tests.support.people import person

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model.__name__)
OF_A_NAMESPACE = (Pod, Event, Job, Policy, Binding, Work, Attempt, Dependent)
BACKEND = "fleet.api.sign_in.passwords.PasswordBackend"


def staff(name: str, *grants: tuple[str, str], superuser: bool = False) -> Client:
    """Signed in, and with every permission that Django knows."""
    user = person(name, *grants, superuser=superuser)
    user.user_permissions.set(Permission.objects.all())
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client = Client()
    client.force_login(user, BACKEND)
    return client


def page(model: type, which: str = "changelist", *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{which}", args=args)  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_django_s_permissions_open_nothing(model: type) -> None:
    fill(1)
    client = staff("charlie")
    row = model.objects.first()  # type: ignore[attr-defined]
    assert client.get(page(model)).status_code == 403
    assert client.post(page(model, "add"), {}).status_code == 403
    if row is not None:
        assert client.get(page(model, "change", row.pk)).status_code in (302, 403)
        assert client.post(page(model, "delete", row.pk), {"post": "yes"}).status_code in (302, 403)


@pytest.mark.parametrize("model", OF_A_NAMESPACE, ids=lambda model: model.__name__)
def test_rows_of_other_tenants_are_not_there(model: type) -> None:
    fill(1)
    Event.objects.update(regarding_namespace="default")
    row = model.objects.get()  # type: ignore[attr-defined]
    stranger, mine = staff("eve", (Grant.Role.EDITOR, "team-a")), staff("dora", (Grant.Role.EDITOR, "default"))
    assert "0 results" not in mine.get(page(model)).content.decode()
    assert mine.get(page(model)).context["cl"].result_count == 1
    listed = stranger.get(page(model))
    assert listed.context["cl"].result_count == 0
    choices = [getattr(spec, "lookup_choices", "") for spec in listed.context["cl"].filter_specs]
    assert "default" not in str(choices)
    assert stranger.get(page(model, "change", row.pk)).status_code == 302
    assert mine.get(page(model, "change", row.pk)).status_code == 200


def test_a_job_of_another_tenant_cannot_be_deleted() -> None:
    fill(1)
    job = Job.objects.get()
    client = staff("eve", (Grant.Role.EDITOR, "team-a"))
    client.post(page(Job), {"action": "remove", "_selected_action": [job.pk]})
    assert Job.objects.get().deleting_at is None


@pytest.mark.parametrize("superuser", [True, False])
def test_roles_are_given_and_taken_back_elsewhere(superuser: bool) -> None:
    client = staff("ada", (Grant.Role.FLEET_ADMIN, ""), superuser=superuser)
    ada, row = User.objects.get(), Grant.objects.get()
    form = {"user": ada.pk, "role": Grant.Role.QUOTA_ADMIN, "namespace": ""}
    assert client.post(page(Grant, "add"), form).status_code == 403
    assert client.post(page(Grant, "change", row.pk), form).status_code == 403
    assert client.post(page(Grant, "delete", row.pk), {"post": "yes"}).status_code == 403
    client.post(page(Grant), {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert list(Grant.objects.values_list("role", "namespace")) == [(Grant.Role.FLEET_ADMIN, "")]


def test_users_are_shown_and_changed_elsewhere() -> None:
    client = staff("root", superuser=True)
    root = User.objects.get()
    shown = client.get(page(User, "change", root.pk))
    assert shown.status_code == 200
    assert root.password not in shown.content.decode()
    assert client.post(page(User, "change", root.pk), {"username": "x", "is_superuser": "on"}).status_code == 403
    assert client.post(page(User, "add"), {"username": "x"}).status_code == 403
    assert client.get(f"/admin/auth/user/{root.pk}/password/").status_code in (302, 403, 404)
    assert not admin.site.is_registered(type(root.groups.model()))


@pytest.mark.parametrize(
    ("model", "lookup"),
    [(User, "password__startswith=p"), (Dependent, "manifest__icontains=s"), (Token, "digest__gt=0")],
)
def test_what_is_hidden_cannot_be_guessed_by_filters(model: type, lookup: str) -> None:
    fill(1)
    client = staff("root", superuser=True)
    assert client.get(f"{page(model)}?{lookup}").status_code in (302, 400)


def test_a_fleet_admin_alone_sees_users_tokens_grants_and_holds() -> None:
    fill(1)
    client = staff("eve", (Grant.Role.EDITOR, ""), (Grant.Role.VIEWER, ""))
    assert [client.get(page(model)).status_code for model in (User, Token, Grant)] == [403] * 3
    client = staff("ada", (Grant.Role.FLEET_ADMIN, ""))
    assert [client.get(page(model)).status_code for model in (User, Token, Grant)] == [200] * 3


def test_a_token_is_revoked_by_who_may_change_grants() -> None:
    user = person("ci")
    access.mint(user, "ci", life=None, now=timezone.now())
    form = {"action": "revoke", "_selected_action": [Token.objects.get().pk]}
    staff("eve", (Grant.Role.EDITOR, "")).post(page(Token), form)
    assert Token.objects.get().revoked_at is None
    staff("ada", (Grant.Role.FLEET_ADMIN, "")).post(page(Token), form)
    assert Token.objects.get().revoked_at is not None


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/api/v1/docs/", "/"])
def test_every_page_has_a_content_security_policy(path: str) -> None:
    policy = staff("root", superuser=True).get(path, follow=True).headers["Content-Security-Policy"]
    assert "object-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'self'" in policy
    assert "http" not in policy
