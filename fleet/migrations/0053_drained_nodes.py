from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("fleet", "0052_gpu_failed")]

    operations = [
        migrations.AddField(
            model_name="nodeexclusion",
            name="drains",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
