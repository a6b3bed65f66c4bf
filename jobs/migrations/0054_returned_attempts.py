from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0053_hangs")]

    operations = [
        migrations.AddField("attempt", "left_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("attempt", "returned_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("usagespan", "name", models.CharField(blank=True, db_default="", max_length=253)),
    ]
