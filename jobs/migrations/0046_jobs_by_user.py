from django.db import migrations, models

from fleet.db.migrating import AddIndexOnline


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("jobs", "0045_works_avoided_nodes")]

    operations = [
        AddIndexOnline("job", models.Index(fields=["submitted_by", "created_at", "gpus"], name="jobs_by_user")),
    ]
