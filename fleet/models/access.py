"""Who may knock: bearer tokens, one-time sign-in links, and grants of roles."""

from datetime import datetime, timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models


class Token(models.Model):
    """A bearer token; only its SHA-256 digest is kept (the token itself has 256 random bits)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=63)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    scope = models.JSONField(null=True, blank=True)
    """`fleet.core.security.token_scopes.Scope` as JSON; null: everything its user may do."""
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, db_index=False, related_name="children"
    )
    """The token that its minter came in with: this one ends with it."""
    minted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        db_index=False,
        related_name="minted_tokens",
    )
    """Null: on the machine, or by a version that did not record it."""

    class Meta:
        indexes = [
            models.Index(fields=["parent"], name="token_by_parent"),
            models.Index(fields=["minted_by"], name="token_by_minter"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def ends_at(self) -> datetime:
        """When it expires: no later than the longest life that is set now, so that lowering it ends older tokens as well."""
        last = self.created_at + timedelta(seconds=settings.CONVOY_ACCESS.token_max_s)
        return last if self.expires_at is None else min(self.expires_at, last)


class SigninLink(models.Model):
    """Signs its user in once, soon; then it is used up."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)


class Grant(models.Model):
    """One role for one user, in one namespace or (empty) in all of them."""

    class Role(models.TextChoices):
        FLEET_ADMIN = "fleet-admin"
        QUOTA_ADMIN = "quota-admin"
        EDITOR = "editor"
        VIEWER = "viewer"

    WHOLE = (Role.FLEET_ADMIN, Role.QUOTA_ADMIN)
    """Roles for the fleet as a whole, which no namespace bounds."""
    NOT_HERE = "must be empty: this role is one for the whole fleet"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants")
    role = models.CharField(max_length=16, choices=Role.choices)
    namespace = models.CharField(max_length=63, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "role", "namespace"], name="grant_once")]

    def __str__(self) -> str:
        return f"{self.user}: {self.role} in {self.namespace or 'all namespaces'}"

    def clean(self) -> None:
        if self.namespace and self.role in self.WHOLE:
            raise ValidationError({"namespace": self.NOT_HERE})
