from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0040_stopped_works_index")]

    operations = [
        migrations.AddField("attempt", "leaf", models.CharField(blank=True, db_default="", default="", max_length=700)),
    ]
