"""Every HTTP path of the product, and which door answers it. What no other door owns belongs to the console."""

from django.contrib import admin
from django.urls import include, path, re_path

from fleet.api.http import console, probes
from fleet.api.sign_in import oidc
from fleet.api.sign_in.links import sign_in_by_link
from jobs.api.reports.metrics import metrics

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("deploy.config.api_urls")),
    path("signin/<str:text>/", sign_in_by_link, name="signin"),
    path("oidc/signin/", oidc.begin, name="oidc-signin"),
    path("oidc/callback/", oidc.come_back),
    path("readyz", probes.readyz),
    path("metrics", metrics),
    re_path(r"^(?!api/|admin/|static/|ws/|assets/)[^.]*$", console.page, name="console"),
]
handler400 = "fleet.api.http.problems.bad_request"
handler403 = "fleet.api.http.problems.forbidden"
handler404 = "fleet.api.http.problems.not_found"
handler500 = "fleet.api.http.problems.server_error"
