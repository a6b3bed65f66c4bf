from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0036_dependencies")]

    operations = [
        migrations.AddField("job", "deadline_at", models.DateTimeField(blank=True, null=True)),
        AddIndexOnline(
            "job",
            models.Index(
                fields=["state", "deadline_at"], condition=models.Q(deadline_at__isnull=False), name="jobs_deadline"
            ),
        ),
    ]
