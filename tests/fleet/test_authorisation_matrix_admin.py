"""Every role × page and action × model × own or other namespace through the admin, against rules written anew.

Models and actions are those that are registered: one that stands in no rule here fails until it is classified.
"""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.db import transaction
from django.test import Client
from django.urls import reverse

from fleet.models import Event, Grant, Pod
from jobs.models import Dependent, Job, Policy, Work
from quotas.models import Queue, QuotaGrant
from tests.fleet.builders import fill
from tests.support import quotas
from tests.support.people import person, roles_in

pytestmark = pytest.mark.django_db
OWN, OTHER = "default", "speech"
ROLES = roles_in(OWN)
SHOWN_TO_ALL = {"Cluster", "Node", "QuotaTree", "Queue", "QuotaRevision", "QuotaGrant", "NamespacePolicy"}
FOR_ADMINS = {"Hold", "Token", "AuditEntry", "Grant", "User"}
OF_A_NAMESPACE = {"Pod", "Event", "Job", "Policy", "Binding", "Work", "Attempt", "Dependent"}
WRITTEN = {"add": {"Cluster": {"admin"}, "QuotaGrant": {"quotas", "admin"}}, "change": {"QuotaGrant": {"quotas", "admin"}},
           "delete": {"QuotaGrant": {"quotas", "admin"}}}  # fmt: skip
"""Who may open a page that writes; of every other model nobody."""
QUEUES = {"lead", "quotas", "admin"}
ACTIONS: dict[tuple[str, str], set[str]] = {
    **dict.fromkeys((("Cluster", "cordon"), ("Cluster", "uncordon"), ("Token", "revoke")), {"admin"}),
    **{("Job", action): {"writer", "admin"} for action in ("suspend", "resume", "remove")},
    **{("Queue", action): QUEUES for action in ("hold", "drain", "stop", "reopen")},
    ("QuotaGrant", "delete_selected"): {"quotas", "admin"},
}
"""Who may do it to the row of another namespace, or of none."""
MODELS = {model.__name__: model for model in admin.site._registry}


def allowed(who: str, model: str, namespace: str) -> bool:
    """To see a row."""
    held = ROLES[who]
    if held is None:
        return False
    role, where = held
    if model in FOR_ADMINS:
        return role == Grant.Role.FLEET_ADMIN
    return model in SHOWN_TO_ALL or where in ("", namespace)


@pytest.fixture
def rows(db: None) -> dict[str, dict[str, Any]]:
    """A row of every model in the own namespace and in another one; of a model without namespaces any."""
    fill(1)
    fill(2)
    for model in (Pod, Job, Policy, Work, Dependent):
        model.objects.filter(name="n2").update(namespace=OTHER)  # type: ignore[attr-defined]
    Event.objects.filter(regarding_name="n1").update(regarding_namespace=OWN)
    Event.objects.filter(regarding_name="n2").update(regarding_namespace=OTHER)
    Job.objects.update(state=Job.State.QUEUED)
    quotas.apply_tree(quotas.leaf("a"))
    QuotaGrant.objects.create(user=User.objects.get(username="n1"), path="root/a")
    of_each: dict[str, dict[str, Any]] = {}
    for name, model in MODELS.items():
        first, last = model.objects.order_by("pk").first(), model.objects.order_by("pk").last()  # type: ignore[attr-defined]
        of_each[name] = {OWN: first, OTHER: last} if name in OF_A_NAMESPACE else {"": last}
    return of_each


def client_of(who: str) -> Client:
    """Signed in, with every permission that Django knows."""
    user = person(who, *([held] if (held := ROLES[who]) else []))
    if who == "lead":
        QuotaGrant.objects.create(user=user, path="root")
    user.user_permissions.set(Permission.objects.all())
    User.objects.filter(pk=user.pk).update(is_staff=True)
    client = Client()
    client.force_login(user, "fleet.api.sign_in.passwords.PasswordBackend")
    return client


def page(model: str, which: str, *args: object) -> str:
    meta = MODELS[model]._meta
    return reverse(f"admin:{meta.app_label}_{meta.model_name}_{which}", args=args)


def test_every_model_and_action_is_classified() -> None:
    assert set(MODELS) == SHOWN_TO_ALL | FOR_ADMINS | OF_A_NAMESPACE
    registered = {
        (name, action if isinstance(action, str) else action.__name__)
        for name, model in MODELS.items()
        for action in admin.site._registry[model].actions or ()
    }
    assert registered == ACTIONS.keys() - {("QuotaGrant", "delete_selected")}


@pytest.mark.parametrize("who", ROLES)
def test_pages_are_shown_to_whom_the_rules_do(who: str, rows: dict[str, dict[str, Any]]) -> None:
    client, wrong = client_of(who), []
    for model, by_namespace in rows.items():
        listed = client.get(page(model, "changelist")).status_code
        if (listed == 200) != any(allowed(who, model, namespace) for namespace in (OWN, "")):
            wrong.append((model, "list", listed))
        for namespace, row in by_namespace.items():
            if row is None:
                continue
            for which in ("change", "history"):
                shown = client.get(page(model, which, row.pk)).status_code
                if (shown == 200) != allowed(who, model, namespace):
                    wrong.append((model, which, namespace, shown))
    assert not wrong


@pytest.mark.parametrize("who", ROLES)
def test_nothing_is_written_but_by_whom_the_rules_let(who: str, rows: dict[str, dict[str, Any]]) -> None:
    client, wrong = client_of(who), []
    for model, by_namespace in rows.items():
        for row in filter(None, by_namespace.values()):
            for which, args in (("add", ()), ("change", (row.pk,)), ("delete", (row.pk,))):
                with transaction.atomic():
                    status = client.post(page(model, which, *args), {}).status_code
                    transaction.set_rollback(True)
                if (status == 200) != (who in WRITTEN[which].get(model, set())):
                    wrong.append((model, which, status))
    assert not wrong


@pytest.mark.parametrize("who", ROLES)
def test_actions_act_for_whom_the_rules_let(who: str, rows: dict[str, dict[str, Any]]) -> None:
    client, wrong = client_of(who), []
    Queue.objects.filter(path="root").update(state=Queue.State.OPEN)
    for (model, action), roles in ACTIONS.items():
        row = list(rows[model].values())[-1]
        form = {"action": action, "_selected_action": [row.pk], "post": "yes"}
        with transaction.atomic():
            if model == "Job":
                Job.objects.filter(pk=row.pk).update(
                    suspended=action == "resume", state="Suspended" if action == "resume" else "Queued"
                )
            if model == "Queue" and action == "reopen":
                Queue.objects.update(state=Queue.State.HELD)
            if action == "uncordon":
                type(row).objects.update(cordoned=True)
            before = type(row).objects.filter(pk=row.pk).values().first()
            answer = client.post(page(model, "changelist"), form)
            after = type(row).objects.filter(pk=row.pk).values().first()
            said = [str(message) for message in get_messages(answer.wsgi_request)]
            transaction.set_rollback(True)
        if (before != after) != (who in roles):
            wrong.append((model, action, answer.status_code, said))
    assert not wrong
