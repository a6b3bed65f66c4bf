from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0003_names_of_quota_models")]

    operations = [migrations.AddField("queue", "spent", models.JSONField(blank=True, null=True))]
