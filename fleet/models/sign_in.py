"""What ties a user to an account of an OpenID Connect provider, and what makes each sign-in happen once."""

from django.conf import settings
from django.db import models


class OidcIdentity(models.Model):
    """The account by which a user signs in. Its issuer and subject identify it, a name never does: names are given anew."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="oidc_identity")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="oidc_identity_once")]

    def __str__(self) -> str:
        return f"{self.user}: {self.subject} of {self.issuer}"


class SpentState(models.Model):
    """The state of a sign-in that came back from the provider, or the challenge that a passkey has signed.

    Kept until it would have expired, so that it comes back once.
    """

    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()


class LoginCode(models.Model):
    """What a browser hands to the command line, which gets a token of the user for it and the verifier: once, and soon."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    challenge = models.CharField(max_length=43)
    name = models.CharField(max_length=63)
    life_s = models.PositiveBigIntegerField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
