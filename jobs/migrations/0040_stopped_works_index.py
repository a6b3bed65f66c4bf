from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0039_fenced_works")]

    operations = [
        AddIndexOnline(
            "work",
            models.Index(
                fields=["stopped_at"], condition=models.Q(stopped_at__isnull=False), name="works_stopped"
            ),
        ),
    ]
