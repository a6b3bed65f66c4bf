from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0046_jobs_by_user")]

    operations = [
        migrations.AddField("job", "waited_codes", models.JSONField(blank=True, null=True)),
        migrations.AddField("usagespan", "reason", models.CharField(blank=True, db_default="", max_length=64)),
    ]
