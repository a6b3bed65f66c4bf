"""Every HTTP path of the product, and which door answers it."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/v1/", include("deploy.config.api_urls")),
]
