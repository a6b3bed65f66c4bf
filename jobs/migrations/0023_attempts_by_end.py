from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0022_series")]

    operations = [
        AddIndexOnline("attempt", models.Index(fields=["ended_at"], name="attempts_by_end")),
    ]
