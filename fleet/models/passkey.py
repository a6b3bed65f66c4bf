"""Passkeys (WebAuthn) of local users: the public half of a key that an authenticator keeps for one host name."""

from django.conf import settings
from django.db import models


class Passkey(models.Model):
    """Asked for with the password, as an authenticator app is; a user may have several, and recovery codes beside them."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=63)
    site = models.CharField(max_length=253)
    """The host name that it is for: browsers offer it nowhere else."""
    digest = models.CharField(max_length=64, unique=True)
    """Of the credential's id: an id may be longer than an index takes."""
    credential = models.BinaryField()
    """Its id and public key, as WebAuthn encodes them."""
    sign_count = models.BigIntegerField(default=0)
    """The counter of the last signature; 0 where the authenticator has none. One that does not grow is of a copied key."""
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"
