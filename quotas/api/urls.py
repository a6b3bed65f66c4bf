"""The REST paths of entitlement."""

from django.urls import re_path
from rest_framework.routers import SimpleRouter

from quotas.api import tree
from quotas.api.leads import LeadViewSet
from quotas.api.queues import QueueViewSet

router = SimpleRouter()
router.register("queues", QueueViewSet, "queue")
router.register("leads", LeadViewSet, "lead")
urlpatterns = [
    re_path("^quota/tree/?$", tree.TreeView.as_view(), name="quota-tree"),
    re_path("^quota/tree/preview/?$", tree.PreviewView.as_view(), name="quota-preview"),
    re_path("^quota/tree/manifest/?$", tree.ManifestView.as_view(), name="quota-manifest"),
    re_path("^quota/tree/history/?$", tree.HistoryView.as_view(), name="quota-history"),
    re_path("^quota/tree/history/(?P<pk>[0-9]{1,9})/?$", tree.GenerationView.as_view(), name="quota-generation"),
    re_path("^quota/tree/revert/?$", tree.RevertView.as_view(), name="quota-revert"),
    *router.urls,
]
