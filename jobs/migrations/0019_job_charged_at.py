from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0018_attempt_cause")]

    operations = [
        migrations.AddField(
            model_name="job", name="charged_at", field=models.DateTimeField(blank=True, null=True)
        ),
    ]
