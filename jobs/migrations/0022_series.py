import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0021_shares_over_time'),
    ]

    operations = [
        migrations.CreateModel(
            name='Series',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.CharField(max_length=16)),
                ('dimension', models.CharField(max_length=16)),
                ('name', models.CharField(blank=True, max_length=700)),
            ],
        ),
        migrations.CreateModel(
            name='SeriesPoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.PositiveSmallIntegerField()),
                ('at', models.BigIntegerField()),
                ('value', models.FloatField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='SeriesProgress',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('only', models.BooleanField(default=True, editable=False, unique=True)),
                ('begun', models.BigIntegerField()),
                ('fine', models.BigIntegerField()),
                ('minute', models.BigIntegerField()),
                ('hour', models.BigIntegerField()),
                ('version', models.BigIntegerField(default=-1)),
                ('version_since', models.BigIntegerField(default=0)),
            ],
        ),
        migrations.AddField(
            model_name='deletedjob',
            name='runs',
            field=models.JSONField(null=True),
        ),
        migrations.AddConstraint(
            model_name='series',
            constraint=models.UniqueConstraint(fields=('dimension', 'name', 'metric'), name='series_once'),
        ),
        migrations.AddField(
            model_name='seriespoint',
            name='series',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='points', to='jobs.series'),
        ),
        migrations.AddIndex(
            model_name='seriespoint',
            index=models.Index(fields=['step', 'at'], name='series_points_by_time'),
        ),
        migrations.AddConstraint(
            model_name='seriespoint',
            constraint=models.UniqueConstraint(fields=('series', 'step', 'at'), name='series_point_once'),
        ),
    ]
