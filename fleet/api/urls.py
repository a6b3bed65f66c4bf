"""The REST paths of supply, and of signing in."""

from django.urls import path, re_path
from rest_framework.routers import SimpleRouter

from fleet.api.audit import AuditViewSet
from fleet.api.clusters import ClusterViewSet, EventViewSet, NodeViewSet
from fleet.api.grants import GrantViewSet, UserTokenViewSet, UserViewSet
from fleet.api.keys import RotationView
from fleet.api.kubernetes import KubernetesView
from fleet.api.namespaces import NamespacePolicyViewSet
from fleet.api.saved_views import SavedViewViewSet
from fleet.api.sign_in.cli_logins import LoginCodeView, LoginTokenView
from fleet.api.sign_in.second_factor import (
    PasskeyOptionsView,
    PasskeyRemovalView,
    PasskeysView,
    SecondFactorCodeView,
    SecondFactorView,
)
from fleet.api.sign_in.session import MeView, SessionView, TokenViewSet
from fleet.api.system import SystemView

router = SimpleRouter()
router.register("clusters", ClusterViewSet, "cluster")
router.register("nodes", NodeViewSet, "node")
router.register("events", EventViewSet, "event")
router.register("tokens", TokenViewSet, "token")
router.register("audit", AuditViewSet, "audit")
router.register("users", UserViewSet, "user")
router.register("namespaces", NamespacePolicyViewSet, "namespace-policy")
router.register("views", SavedViewViewSet, "view")
router.register("grants", GrantViewSet, "grant")
router.register(r"users/(?P<username>[^/]+)/tokens", UserTokenViewSet, "user-token")
urlpatterns = [
    path("session/", SessionView.as_view(), name="session"),
    path("kubernetes/", KubernetesView.as_view(), name="kubernetes"),
    path("system/", SystemView.as_view(), name="system"),
    path("keys/rotation/", RotationView.as_view(), name="key-rotation"),
    path("login/code/", LoginCodeView.as_view(), name="login-code"),
    path("login/token/", LoginTokenView.as_view(), name="login-token"),
    path("second-factor/", SecondFactorView.as_view(), name="second-factor"),
    path("second-factor/code/", SecondFactorCodeView.as_view(), name="second-factor-code"),
    path("second-factor/passkeys/", PasskeysView.as_view(), name="passkeys"),
    path("second-factor/passkeys/options/", PasskeyOptionsView.as_view(), name="passkey-options"),
    re_path(r"^second-factor/passkeys/(?P<pk>[0-9]+)/remove/$", PasskeyRemovalView.as_view(), name="passkey-removal"),
    path("me/", MeView.as_view(), name="me"),
    *router.urls,
]
