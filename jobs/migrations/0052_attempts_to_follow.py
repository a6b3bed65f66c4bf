from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("jobs", "0051_runtime_facts")]

    operations = [
        AddIndexOnline(
            "attempt",
            models.Index(
                fields=["facts_due_at"],
                condition=models.Q(facts_due_at__isnull=False),
                name="attempts_to_follow",
            ),
        ),
    ]
