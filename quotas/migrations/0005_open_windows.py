from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("quotas", "0004_spent_budgets")]

    operations = [migrations.AddField("queue", "window", models.JSONField(blank=True, null=True))]
