"""The REST paths of supply, and of signing in."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from fleet.api.clusters import ClusterViewSet, EventViewSet, NodeViewSet
from fleet.api.session import MeView, SessionView, TokenViewSet

router = SimpleRouter()
router.register("clusters", ClusterViewSet, "cluster")
router.register("nodes", NodeViewSet, "node")
router.register("events", EventViewSet, "event")
router.register("tokens", TokenViewSet, "token")
urlpatterns = [
    path("session/", SessionView.as_view(), name="session"),
    path("me/", MeView.as_view(), name="me"),
    *router.urls,
]
