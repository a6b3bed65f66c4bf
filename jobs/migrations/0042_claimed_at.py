from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0041_attempt_leaf")]

    operations = [migrations.AddField("job", "claimed_at", models.DateTimeField(blank=True, null=True))]
