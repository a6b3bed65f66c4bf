from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0047_progress")]

    operations = [
        migrations.AddField("job", "waited_codes", models.JSONField(blank=True, null=True)),
        migrations.AddField("usagespan", "reason", models.CharField(blank=True, db_default="", max_length=64)),
    ]
