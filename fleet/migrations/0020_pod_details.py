from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('fleet', '0019_audit_chain'),
    ]

    operations = [
        migrations.AddField(
            model_name='pod',
            name='details',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AddIndex(
            model_name='pod',
            index=models.Index(fields=['namespace', 'name', 'cluster'], name='pod_in_order_of_lists'),
        ),
        migrations.AddIndex(
            model_name='pod',
            index=models.Index(fields=['uid'], name='pod_by_uid'),
        ),
    ]
