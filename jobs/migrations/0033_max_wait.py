from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0032_elastic_indexes")]

    operations = [
        migrations.AddField("job", "max_wait_s", models.PositiveIntegerField(blank=True, null=True)),
        AddIndexOnline(
            "job",
            models.Index(
                fields=["state", "max_wait_s"], condition=models.Q(max_wait_s__isnull=False), name="jobs_max_wait"
            ),
        ),
    ]
