from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0038_works_stale_metadata")]

    operations = [
        migrations.AddField("work", "fenced", models.BooleanField(db_default=False, default=False)),
        migrations.AddField("work", "stopped_at", models.DateTimeField(blank=True, null=True)),
    ]
