"""Which fleet this is: its mark on everything made in a member, so that two fleets can share one without harm."""

import uuid

from django.db import models


class Identity(models.Model):
    """One row, made when it is first asked for."""

    uid = models.UUIDField(default=uuid.uuid4, editable=False)

    @classmethod
    def here(cls) -> str:
        return str(cls.objects.get_or_create(pk=1)[0].uid)
