from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0025_works_node_labels")]

    operations = [
        migrations.AddField("job", "size", models.JSONField(blank=True, null=True)),
        migrations.AddField("job", "resize", models.JSONField(blank=True, null=True)),
        migrations.AddField("work", "resize_wanted", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("work", "resize_done", models.PositiveIntegerField(db_default=0, default=0)),
    ]
