from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0026_resizing")]

    operations = [
        AddIndexOnline(
            "job", models.Index(fields=["state"], condition=models.Q(resize__isnull=False), name="jobs_growing")
        ),
        AddIndexOnline(
            "work",
            models.Index(
                fields=["due_at"],
                condition=models.Q(resize_wanted__gt=models.F("resize_done")),
                name="works_resizing",
            ),
        ),
    ]
