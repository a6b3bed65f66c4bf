

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("jobs", "0014_former_policy"),
    ]

    operations = [
        migrations.CreateModel(
            name='DeletedJob',
            fields=[
                ('uid', models.UUIDField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.AddField(
            model_name='work',
            name='marked',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='work',
            name='object_uid',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
    ]
