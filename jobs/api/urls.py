"""The REST paths of demand."""

from django.urls import re_path
from rest_framework.routers import SimpleRouter

from jobs.api.inspect.evictions import EvictionsView, NodeEvictionsView
from jobs.api.inspect.explain import ExplainView
from jobs.api.inspect.gpu_usage import (
    ClusterUsesView,
    GroupUsesView,
    IdleJobsView,
    JobGpusView,
    JobUsesView,
    NodeUsesView,
)
from jobs.api.inspect.gpus import GpuMapView, GpuModelsView, NodeDevicesView
from jobs.api.inspect.notices import NoticesView
from jobs.api.inspect.spot import SpotView
from jobs.api.inspect.whatif import WhatIfView
from jobs.api.placement import SpeedsView
from jobs.api.queueunits import QueueUnitViewSet
from jobs.api.reports.accounting import AccountingView
from jobs.api.reports.attempts import AttemptsView
from jobs.api.reports.goodput import GoodputView, JobGoodputView
from jobs.api.reports.gpu_hours import GpuHoursView
from jobs.api.reports.incidents import IncidentViewSet
from jobs.api.reports.lending import LendingView
from jobs.api.reports.series import SeriesView
from jobs.api.reports.shares import SharesView
from jobs.api.reports.waits import WaitsView
from jobs.api.submission.bulk import BulkView
from jobs.api.submission.dry_runs import DryRunView
from jobs.api.submission.manifests import ApplyView, DeleteView
from jobs.api.submission.previews import ApplyPreviewView
from jobs.api.submission.schemas import KindsView, PlaceView
from jobs.api.views import UID, BindingViewSet, DependentViewSet, JobViewSet, PolicyViewSet

router = SimpleRouter()
router.register("jobs", JobViewSet, "job")
router.register("policies", PolicyViewSet, "policy")
router.register("bindings", BindingViewSet, "binding")
router.register("dependents", DependentViewSet, "dependent")
router.register("incidents", IncidentViewSet, "incident")
router.register("queueunits", QueueUnitViewSet, "queueunit")
urlpatterns = [
    re_path("^apply/?$", ApplyView.as_view(), name="apply"),
    re_path("^apply/preview/?$", ApplyPreviewView.as_view(), name="apply-preview"),
    re_path("^clusters/(?P<name>[^/]+)/evictions/?$", EvictionsView.as_view(), name="cluster-evictions"),
    re_path(
        "^clusters/(?P<name>[^/]+)/nodes/(?P<node>[^/]+)/evictions/?$",
        NodeEvictionsView.as_view(),
        name="node-evictions",
    ),
    re_path("^clusters/(?P<name>[^/]+)/spot/?$", SpotView.as_view(), name="cluster-spot"),
    re_path("^gpus/?$", GpuModelsView.as_view(), name="gpus"),
    re_path("^gpus/(?P<name>[^/]+)/?$", GpuMapView.as_view(), name="gpu-map"),
    re_path("^gpus/(?P<name>[^/]+)/(?P<node>[^/]+)/?$", NodeDevicesView.as_view(), name="gpu-node"),
    re_path("^gpu-usage/?$", ClusterUsesView.as_view(), name="gpu-usage"),
    re_path("^gpu-usage/jobs/?$", JobUsesView.as_view(), name="gpu-usage-jobs"),
    re_path("^gpu-usage/groups/?$", GroupUsesView.as_view(), name="gpu-usage-groups"),
    re_path("^gpu-usage/idle/?$", IdleJobsView.as_view(), name="gpu-usage-idle"),
    re_path("^gpu-usage/clusters/(?P<name>[^/]+)/?$", NodeUsesView.as_view(), name="gpu-usage-cluster"),
    re_path("^attempts/?$", AttemptsView.as_view(), name="attempts"),
    re_path("^accounting/?$", AccountingView.as_view(), name="accounting"),
    re_path("^waits/?$", WaitsView.as_view(), name="waits"),
    re_path("^lending/?$", LendingView.as_view(), name="lending"),
    re_path("^shares/?$", SharesView.as_view(), name="shares"),
    re_path("^goodput/?$", GoodputView.as_view(), name="goodput"),
    re_path("^gpu-hours/?$", GpuHoursView.as_view(), name="gpu-hours"),
    re_path("^speeds/?$", SpeedsView.as_view(), name="speeds"),
    re_path("^series/?$", SeriesView.as_view(), name="series"),
    re_path("^schemas/?$", KindsView.as_view(), name="schemas"),
    re_path("^schemas/fields/?$", PlaceView.as_view(), name="schema-fields"),
    re_path("^delete/?$", DeleteView.as_view(), name="delete"),
    re_path("^jobs/bulk/?$", BulkView.as_view(), name="bulk"),
    re_path(f"^jobs/(?P<id>{UID})/explain/?$", ExplainView.as_view(), name="explain"),
    re_path(f"^jobs/(?P<id>{UID})/goodput/?$", JobGoodputView.as_view(), name="job-goodput"),
    re_path(f"^jobs/(?P<id>{UID})/gpu-usage/?$", JobGpusView.as_view(), name="job-gpu-usage"),
    re_path(f"^jobs/(?P<id>{UID})/notices/?$", NoticesView.as_view(), name="job-notices"),
    re_path("^whatif/?$", WhatIfView.as_view(), name="whatif"),
    re_path("^quota/dry-run/?$", DryRunView.as_view(), name="quota-dry-run"),
    *router.urls,
]
