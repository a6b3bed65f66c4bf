"""The permissions of each role at each API, generated from what is served and compared with docs/permissions.md.

What is new has no verdict there, so this fails until it is looked at and written with ``CONVOY_WRITE_PERMISSIONS=1``; and laws
that no table may break are checked on the verdicts themselves.
"""

import os
from typing import Any

import pytest

from deploy.bootstrap.home import ROOT
from deploy.config.kube import application
from fleet.models import Cluster
from tests.attacks import permissions
from tests.attacks.permissions import ROLES, Rows

COLUMNS = ("stranger", *ROLES)
FILE = ROOT / "docs" / "permissions.md"
WRITES = bool(os.environ.get("CONVOY_WRITE_PERMISSIONS"))
OF_ONESELF = (
    "/api/v1/session/", "/api/v1/me/", "/api/v1/tokens/", "/api/v1/login/", "/api/v1/second-factor/", "/api/v1/kubernetes/",
    "/api/v1/views/", "/api/v1/docs/", "/api/v1/schema/", "/api/v1/schemas/", "/api/v1/system/",
)  # fmt: skip
"""What takes no role: it is about the caller alone, or about the API itself."""
ENTITLEMENT = ("elasticquotatrees.", "queues.")
"""Their namespaces are the product's own: everybody with a role reads them."""
ANSWERS_ONLY = ("POST /api/v1/whatif/", "POST /api/v1/quota/tree/preview/", "POST /api/v1/clusters/check/")
"""Writing methods that write nothing."""


def table(rows: Rows) -> str:
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    lines += [f"| `{name}` | {' | '.join(verdicts)} |" for name, verdicts in rows.items()]
    return "\n".join(lines)


def check(section: str, rows: Rows) -> None:
    begin, end = f"<!-- {section} -->\n", f"<!-- end of {section} -->"
    text = FILE.read_text()
    before, _, rest = text.partition(begin)
    written, _, after = rest.partition(end)
    if WRITES:
        FILE.write_text(f"{before}{begin}{table(rows)}\n{end}{after}")
        return
    wanted, found = written.splitlines(), table(rows).splitlines()
    missing, surplus = [line for line in found if line not in wanted], [line for line in wanted if line not in found]
    assert (missing, surplus) == ([], []), "look at each verdict, then write it with CONVOY_WRITE_PERMISSIONS=1"


def of(rows: Rows, role: str) -> dict[str, str]:
    return {
        name: verdicts[COLUMNS.index(role)] for name, verdicts in rows.items() if verdicts[COLUMNS.index(role)] != "-"
    }


@pytest.mark.django_db
def test_rest_lets_each_role_do_what_the_table_says(north: Cluster) -> None:
    permissions.fill_fleet(north)
    rows = permissions.rest(COLUMNS)
    check("REST", rows)
    for role in ("stranger", "nobody"):
        assert [name for name in of(rows, role) if not name.split()[1].startswith(OF_ONESELF)] == []
    for role in ("viewer", "reader"):
        writes = {name for name in of(rows, role) if not name.startswith("GET ")}
        assert [name for name in writes if not name.split()[1].startswith(OF_ONESELF)] == sorted(
            writes
            & {*ANSWERS_ONLY, "POST /api/v1/quota/dry-run/", "POST /api/v1/jobs/bulk/", "POST /api/v1/apply/preview/"}
        )
    for role in ("editor", "mixed"):
        allowed = of(rows, role).items()
        reached = {name for name, verdict in allowed if not name.startswith("GET ") and verdict in ("all", "other")}
        assert reached <= set(ANSWERS_ONLY)
    assert len(rows) > 100 and set(of(rows, "admin")) >= set(of(rows, "editor"))


HIDDEN = ("incidents", "jobs/(", "policies", "dependents", "queueunits", "tokens")
"""What REST routes begin with whose argument names what others may not know of.

Each check is laid bare: without that of objects ``mixed`` would write as a viewer, without that of rows a refusal would say
what is there, and without that of the view the object would be looked for first.
"""


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["viewer", "lead", "editor"])
def test_rest_answers_of_what_is_another_team_s_as_of_what_is_not_there(north: Cluster, role: str) -> None:
    permissions.fill_fleet(north)
    (client, user), asked = permissions.client_in(role), 0
    for method, route in permissions.rest_rows():
        if "(?P<" in route and route.startswith(HIDDEN):
            about, absent = permissions.answers_alike(client, method, route, permissions.OTHER, user)
            assert about == absent, (method, route)
            asked += 1
    assert asked > 20


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["nobody", "viewer"])
def test_rest_refuses_who_may_do_it_nowhere_before_it_looks_for_the_object(north: Cluster, role: str) -> None:
    permissions.fill_fleet(north)
    (client, user), asked = permissions.client_in(role), 0
    for method, route in permissions.rest_rows():
        path = permissions.shown(route)
        if (
            path.startswith(OF_ONESELF)
            or f"{method.upper()} {path}" in ANSWERS_ONLY
            or (role, method) == ("viewer", "get")
        ):
            continue
        for namespace in (permissions.OWN, permissions.OTHER):
            answers = permissions.answers_alike(client, method, route, namespace, user)
            assert [code for code, _ in answers] == [403, 403], (method, route)
            asked += 1
    assert asked >= 90


@pytest.mark.django_db(transaction=True)
def test_the_kubernetes_style_api_lets_each_role_do_what_the_table_says() -> None:
    door = application()
    rows = permissions.at_kube(door, COLUMNS, permissions.kube_rows(door.catalog))
    check("kube", rows)
    assert len(rows) > 150 and not of(rows, "stranger")
    _obey_namespaces(rows, reads=("get", "list"))


@pytest.mark.django_db(transaction=True)
def test_the_proxy_lets_each_role_do_what_the_table_says() -> None:
    rows = permissions.at_kube(application(), COLUMNS, permissions.proxy_rows())
    check("proxy", rows)
    assert len(rows) > 200 and not of(rows, "stranger") and not of(rows, "nobody")
    _obey_namespaces(rows, reads=("GET",))
    tunnels = ("/exec", "/attach", "/portforward", "services/x/proxy", "serviceaccounts/x/token", "nodes/x/proxy")
    assert {name for name in of(rows, "admin") if name.split()[1].endswith(tunnels)} == set()


def _obey_namespaces(rows: Rows, reads: tuple[str, ...]) -> None:
    """Roles in one namespace reach no other, and those that read write nothing."""
    for role in ("viewer", "editor", "mixed"):
        reached = [name for name, verdict in of(rows, role).items() if verdict in ("all", "other")]
        reached = [name for name in reached if role != "mixed" or name.split()[0] not in reads]
        assert [name for name in reached if not name.split()[1].startswith(ENTITLEMENT)] == []
    for role in ("viewer", "reader"):
        assert [name for name in of(rows, role) if name.split()[0] not in reads] == []


@pytest.mark.django_db
def test_the_websocket_tells_each_role_what_the_table_says() -> None:
    check("websocket", permissions.websocket(COLUMNS))


@pytest.mark.django_db
def test_the_admin_opens_to_each_role_what_the_table_says() -> None:
    rows = permissions.in_admin(COLUMNS)
    check("admin", rows)
    assert not of(rows, "stranger") and not of(rows, "nobody") and len(rows) > 40
    changed = {name for role in ROLES if role != "admin" for name in of(rows, role) if not name.startswith("view ")}
    assert changed == {f"{act} quotas.QuotaGrant" for act in ("add", "change", "delete")}, (
        "a quota-admin names the leads"
    )


def test_the_page_has_these_sections_and_no_other(request: Any) -> None:
    text = FILE.read_text()
    assert text.count("<!-- end of ") == 5 and text.count("| stranger |") == 5
