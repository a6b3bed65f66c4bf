"""The REST paths under /api/v1/, app by app."""

from django.urls import include, path
from drf_spectacular.views import SpectacularSwaggerView

from deploy.config.contract import ContractView

urlpatterns = [
    path("schema/", ContractView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("", include("fleet.api.urls")),
    path("", include("quotas.api.urls")),
    path("", include("jobs.api.urls")),
]
