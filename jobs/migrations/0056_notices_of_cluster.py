from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0055_attempts_returned")]

    operations = [
        AddIndexOnline("notice", models.Index(fields=["cluster_name", "at"], name="notices_of_cluster")),
    ]
