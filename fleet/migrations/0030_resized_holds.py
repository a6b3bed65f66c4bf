from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0029_preserved_state")]

    operations = [
        migrations.AddField("hold", "resized_at", models.DateTimeField(blank=True, null=True)),
    ]
