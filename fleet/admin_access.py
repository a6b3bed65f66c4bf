"""The admin's side of `fleet.services.authorization.access`.

Its pages open by role, and show of each kind what the reader may read.
Django's own permissions decide nothing in the admin of this product: they could be given past the service that counts admins
and writes the audit. Pages are read-only unless a class says otherwise; what is changed goes through services.
"""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.conf import settings
from django.contrib.auth import authenticate
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AuthenticationForm
from unfold.widgets import UnfoldAdminTextInputWidget

from fleet.services.authorization import access
from fleet.services.authorization.second_factors import Verdict


class RoleAdmin(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Lists and shows; rows are made and removed by services alone."""

    list_per_page = 50
    show_full_result_count = False
    kind = ""
    """What roles are asked for; `access` knows it."""
    namespace_field = ""
    """The lookup that leads to a row's namespace; empty where the kind lives in none."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return access.may_somewhere(request.user, access.READ, self.kind)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Without the rows of namespaces that the reader may not read."""
        rows: QuerySet[Any] = super().get_queryset(request)
        namespaces = access.visible_namespaces(request.user)
        if not self.namespace_field or namespaces is None:
            return rows
        return rows.filter(Q(**{f"{self.namespace_field}__in": [*namespaces, ""]}))

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """By what the page offers as a filter only: any other field could be guessed letter by letter."""
        offered = {part if isinstance(part, str) else part[0] for part in self.list_filter}
        return any(lookup == field or lookup.startswith(f"{field}__") for field in offered)


class SignInForm(AuthenticationForm):  # type: ignore[misc]  # unfold has no types
    """Of the admin's sign-in page: with a second factor, and another way to sign in beside it."""

    code = forms.CharField(
        max_length=40,
        required=False,
        label="Code of your second factor, if you have one",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "one-time-code"}),
    )

    def clean(self) -> dict[str, Any]:
        """As Django does it, with the code."""
        cleaned: dict[str, Any] = self.cleaned_data
        if cleaned.get("username") is not None and cleaned.get("password"):
            self.user_cache = authenticate(self.request, **cleaned)
            if self.user_cache is None:
                raise self._refusal()
            self.confirm_login_allowed(self.user_cache)
        return cleaned

    def _refusal(self) -> forms.ValidationError:
        verdict = getattr(self.request, "second_factor", None)
        if verdict is Verdict.ENROLMENT_WANTED:
            return forms.ValidationError(
                "Fleet admins need a second factor: sign in at the console first, to set one up."
            )
        if verdict is not None:
            return forms.ValidationError(f"Not signed in: {verdict.value}. Enter a new code of your authenticator app.")
        error: forms.ValidationError = self.get_invalid_login_error()
        return error

    @property
    def company(self) -> str:
        return settings.CONVOY_OIDC.name

    @property
    def company_url(self) -> str:
        following = self.request.GET.get("next", "/admin/") if self.request else "/admin/"
        return f"/oidc/signin/?{urlencode({'next': following})}"
