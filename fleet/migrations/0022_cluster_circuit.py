from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0021_token_scope'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='unanswered',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='cluster',
            name='circuit_opened_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='cluster',
            name='circuit_probe_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
