from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0006_job_group"),
    ]

    operations = [
        migrations.AddField(
            model_name="binding",
            name="placement",
            field=models.JSONField(blank=True, default=dict),
        ),
    ]
