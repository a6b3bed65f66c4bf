from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("jobs", "0057_notices_until")]

    operations = [
        AddIndexOnline(
            "job",
            models.Index(fields=["deleting_at"], condition=models.Q(deleting_at__isnull=False), name="jobs_deleting"),
        ),
    ]
