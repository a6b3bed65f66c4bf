from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0034_incidents")]

    operations = [
        AddIndexOnline(
            "attempt",
            models.Index(fields=["incident"], condition=models.Q(incident__isnull=False), name="attempts_of_incident"),
        ),
        AddIndexOnline(
            "attempt",
            models.Index(
                fields=["ended_at"],
                condition=models.Q(incident__isnull=True) & ~models.Q(cause=""),
                name="attempts_unassigned",
            ),
        ),
    ]
