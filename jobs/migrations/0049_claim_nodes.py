from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0048_reasons_of_waiting")]

    operations = [
        migrations.AddField("claimlocation", "node_terms", models.JSONField(blank=True, null=True)),
        migrations.AddField("claimlocation", "read_due_at", models.DateTimeField(blank=True, null=True)),
    ]
