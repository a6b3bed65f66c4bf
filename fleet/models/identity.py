"""Which fleet this is: its mark on everything made in a member, so that two fleets can share one without harm."""

import uuid

from django.db import connection, models


class Identity(models.Model):
    """One row, made when it is first asked for."""

    uid = models.UUIDField(default=uuid.uuid4, editable=False)

    @classmethod
    def here(cls) -> str:
        with connection.cursor() as cursor:  # asked for with every copy that is sent or reported
            cursor.execute(f"SELECT uid FROM {cls._meta.db_table} WHERE id = 1")  # noqa: S608
            row = cursor.fetchone()
        return str(uuid.UUID(str(row[0])) if row else cls.objects.get_or_create(pk=1)[0].uid)
