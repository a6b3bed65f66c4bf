from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("jobs", "0054_returned_attempts")]

    operations = [
        AddIndexOnline(
            "attempt",
            models.Index(
                fields=["cluster_name", "returned_at"],
                condition=models.Q(returned_at__isnull=False),
                name="attempts_returned",
            ),
        ),
    ]
