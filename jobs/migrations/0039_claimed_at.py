from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0038_works_stale_metadata")]

    operations = [migrations.AddField("job", "claimed_at", models.DateTimeField(blank=True, null=True))]
