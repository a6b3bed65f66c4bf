from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0044_namespace_deleting")]

    operations = [
        migrations.AddField("nodeexclusion", "is_ordered", models.BooleanField(db_default=False, default=False)),
    ]
