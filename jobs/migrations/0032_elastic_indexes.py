from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0031_attempt_diagnosis")]

    operations = [
        AddIndexOnline(
            "job", models.Index(fields=["state"], condition=models.Q(shrinks__isnull=False), name="jobs_shrinking")
        ),
        AddIndexOnline("job", models.Index(fields=["state"], condition=models.Q(elastic=True), name="jobs_elastic")),
        AddIndexOnline(
            "attempt",
            models.Index(
                fields=["log_due_at"], condition=models.Q(log_due_at__isnull=False), name="attempts_to_diagnose"
            ),
        ),
    ]
