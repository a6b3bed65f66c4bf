from django.db import migrations, models


class Migration(migrations.Migration):
    """Rows that exist have ``served`` null: processes of the version before serve requests without recording it."""

    dependencies = [
        ("fleet", "0015_discovery_due_at"),
    ]

    operations = [
        migrations.AddField("leaserequests", "served", models.BigIntegerField(null=True)),
        migrations.AddField("leaserequests", "asked_at", models.DateTimeField(null=True)),
        migrations.AddField("leaserequests", "completed_at", models.DateTimeField(null=True)),
        migrations.AlterField("leaserequests", "served", models.BigIntegerField(default=0, null=True)),
    ]
