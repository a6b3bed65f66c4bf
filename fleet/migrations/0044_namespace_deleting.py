from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0043_reclaimable")]

    operations = [
        migrations.AddField("namespace", "deleting_at", models.DateTimeField(blank=True, null=True)),
    ]
