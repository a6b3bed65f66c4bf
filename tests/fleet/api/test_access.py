"""Roles: what each may, where, and what a refusal says."""

import pytest

from fleet.errors import Forbidden
from fleet.models import Grant
from fleet.services.authorization import access
from tests.support.people import person

pytestmark = pytest.mark.django_db


def test_it_lets_an_editor_write_in_its_namespace_only(editor):
    assert access.may(editor, "apply", "Job", "vision")
    assert not access.may(editor, "apply", "Job", "speech")
    assert not access.may(editor, "apply", "Job")


def test_it_lets_any_role_read_clusters_and_only_a_fleet_admin_change_them(editor, viewer, admin):
    assert access.may(viewer, "read", "Cluster") and access.may(editor, "read", "Node")
    assert [access.may(user, "cordon", "Cluster") for user in (editor, viewer, admin)] == [False, False, True]


def test_it_keeps_cluster_wide_policies_for_fleet_admins(admin):
    everywhere = person("eve", (Grant.Role.EDITOR, ""))
    assert access.may(everywhere, "apply", "PropagationPolicy", "any")
    assert not access.may(everywhere, "apply", "ClusterPropagationPolicy")
    assert access.may(admin, "apply", "ClusterPropagationPolicy")


def test_it_gives_nothing_to_a_user_without_roles_or_stopped():
    assert not access.may_somewhere(person("new"), "read", "Cluster")
    stopped = person("old", (Grant.Role.FLEET_ADMIN, ""))
    stopped.is_active = False
    assert not access.may_somewhere(stopped, "read", "Cluster")


def test_it_knows_which_namespaces_are_visible(admin, editor):
    assert access.visible_namespaces(admin) is None
    assert access.visible_namespaces(editor) == {"vision"}
    assert access.visible_namespaces(person("new")) == frozenset()


def test_it_names_the_role_that_would_do(viewer):
    with pytest.raises(Forbidden, match="editor in namespace speech"):
        access.require(viewer, "delete", "Job", "speech")
    with pytest.raises(Forbidden, match="fleet-admin"):
        access.require(viewer, "join", "Cluster")
