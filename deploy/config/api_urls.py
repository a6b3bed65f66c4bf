"""The REST paths under /api/v1/, app by app."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("", include("fleet.api.urls")),
    path("", include("quotas.api.urls")),
    path("", include("jobs.api.urls")),
]
