"""The second factor of local users: a secret shared with an authenticator app, and codes for the day the app is lost."""

from django.conf import settings
from django.db import models

from fleet.models.encrypted import EncryptedJSONField


class SecondFactor(models.Model):
    """Asked for with the password once it is confirmed, which shows that the app has the secret."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    secret = EncryptedJSONField()
    """In base32, as apps take it."""
    confirmed_at = models.DateTimeField(null=True, blank=True)
    last_step = models.BigIntegerField(default=0)
    """The time step of the code that was accepted last: neither it nor an older one is accepted again."""
    attempts = models.PositiveIntegerField(default=0)
    """Since the last accepted code, or since the last lock-out ended."""
    locked_until = models.DateTimeField(null=True, blank=True)


class RecoveryCode(models.Model):
    """Stands in for one code of the app, once."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes")
    digest = models.CharField(max_length=64, unique=True)
    used_at = models.DateTimeField(null=True, blank=True)
