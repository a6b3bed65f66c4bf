from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0040_saved_views")]

    operations = [
        migrations.AddField(
            "node", "problem", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
    ]
