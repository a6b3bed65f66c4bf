"""A migration may run while processes of the former version serve: it expands the schema, and takes nothing away they use.

What is not used any more is removed by a migration of the release after next, which is then listed in `CONTRACTED`.
"""

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

from fleet.db.migrating import AddIndexOnline
from fleet.models import Pod

BASELINE = {"fleet": "0019_audit_chain", "jobs": "0018_attempt_cause", "quotas": "0003_names_of_quota_models"}
"""The last migration of each application from before the rule."""
CONTRACTED: frozenset[tuple[str, str]] = frozenset()
"""Migrations that remove what no supported version uses any more."""
LOCKS = (
    "keeps writers from the table while it is built: use AddIndexOnline, in a migration of its own that is not atomic"
)
TAKES_AWAY = "takes away what processes of the former version use: remove it in the release after next"
_TAKING = (
    migrations.RemoveField, migrations.RenameField, migrations.RenameModel, migrations.DeleteModel, migrations.AlterModelTable,
    migrations.AlterField,
)  # fmt: skip
_HARMLESS = (
    migrations.CreateModel, migrations.AlterModelOptions, migrations.AlterModelManagers, migrations.RemoveIndex,
    migrations.RemoveConstraint, migrations.RunPython, AddIndexOnline,
)  # fmt: skip


def faults(migration: migrations.Migration) -> list[str]:
    new_models = {op.name_lower for op in migration.operations if isinstance(op, migrations.CreateModel)}
    return [
        f"{migration}: {operation.describe()}: {fault}"
        for operation in migration.operations
        if (fault := _fault(operation, migration)) and getattr(operation, "model_name", "").lower() not in new_models
    ]


def _fault(operation: Operation, migration: migrations.Migration) -> str:
    if isinstance(operation, _TAKING):
        return TAKES_AWAY
    if isinstance(operation, migrations.AddField):
        return _fault_of_field(operation.field)
    if isinstance(operation, AddIndexOnline) and migration.atomic:
        return "needs a migration with atomic = False"
    if isinstance(operation, _HARMLESS):
        return ""
    if isinstance(operation, migrations.AddIndex):
        return LOCKS
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return next(filter(None, (_fault(each, migration) for each in operation.database_operations)), "")
    return "is unknown to this rule: extend the rule, or do without it"


def _fault_of_field(field: models.Field) -> str:
    if field.many_to_many or field.null or field.has_db_default():
        return ""
    return "the former version inserts rows without this column: give it null=True or db_default"


def after_baseline() -> list[migrations.Migration]:
    disk = MigrationLoader(None).disk_migrations
    return [
        migration
        for (app, name), migration in sorted(disk.items())
        if app in BASELINE and name > BASELINE[app] and (app, name) not in CONTRACTED
    ]


def test_every_migration_after_the_baseline_only_expands():
    assert after_baseline()
    assert [fault for migration in after_baseline() for fault in faults(migration)] == []


def test_every_application_of_the_product_has_a_baseline():
    ours = {app for app, _ in MigrationLoader(None).disk_migrations if app in ("fleet", "jobs", "quotas", "deploy")}
    assert ours == BASELINE.keys()


def planted(*operations: Operation, atomic: bool = True) -> migrations.Migration:
    migration = migrations.Migration("0099_planted", "fleet")
    migration.operations, migration.atomic = list(operations), atomic
    return migration


INDEX = models.Index(fields=["name"], name="planted")


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("pod", "details"),
        migrations.RenameField("pod", "details", "more"),
        migrations.RenameModel("pod", "unit"),
        migrations.DeleteModel("pod"),
        migrations.AlterField("pod", "details", models.TextField()),
        migrations.AlterModelTable("pod", "unit"),
        migrations.AddField("pod", "size", models.IntegerField()),
        migrations.AddField("pod", "size", models.IntegerField(default=0)),
        migrations.AddIndex("pod", INDEX),
        AddIndexOnline("pod", INDEX),
        migrations.AddConstraint("pod", models.UniqueConstraint(fields=["uid"], name="planted")),
        migrations.RunSQL("DROP TABLE fleet_pod"),
        migrations.SeparateDatabaseAndState([migrations.RemoveField("pod", "details")]),
    ],
    ids=lambda operation: operation.describe(),
)
def test_it_refuses_what_the_former_version_could_not_live_with(operation):
    assert len(faults(planted(operation))) == 1


def test_it_accepts_what_expands():
    table = migrations.CreateModel("unit", [("id", models.BigAutoField(primary_key=True))])
    column = models.IntegerField(db_default=0)
    expanding = [
        migrations.AddField("pod", "size", column),
        migrations.AddField("pod", "size", models.IntegerField(null=True)),
        table,
        migrations.AddIndex("unit", INDEX),
        migrations.RemoveIndex("pod", "old"),
    ]
    assert faults(planted(*expanding)) == []
    assert faults(planted(AddIndexOnline("pod", INDEX), atomic=False)) == []


def indexes() -> dict[str, bool]:
    """Those of pods, and on PostgreSQL whether each is in use."""
    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            return dict.fromkeys(connection.introspection.get_constraints(cursor, Pod._meta.db_table), True)
        cursor.execute(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE i.indrelid = 'fleet_pod'::regclass"
        )
        return dict(cursor.fetchall())


def add_index(collect_sql: bool = False) -> list[str]:
    loader = MigrationLoader(connection)
    state = loader.project_state(("fleet", "0023_pod_indexes"))
    migration = loader.disk_migrations["fleet", "0023_pod_indexes"]
    with connection.schema_editor(collect_sql=collect_sql, atomic=False) as editor:
        for operation in migration.operations:
            operation.database_forwards("fleet", editor, state, state)
    return editor.collected_sql if collect_sql else []


@pytest.mark.django_db(transaction=True)
def test_an_index_is_built_beside_writers_and_once():
    with connection.schema_editor(atomic=False) as editor:
        editor.execute("DROP INDEX pod_by_uid")
    if connection.vendor == "postgresql":
        assert [sql for sql in add_index(collect_sql=True) if "CONCURRENTLY" in sql]
    add_index()
    add_index()
    assert indexes()["pod_by_uid"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite builds an index whole or not at all")
def test_an_index_whose_build_was_interrupted_is_built_anew():
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'pod_by_uid'::regclass")
    assert not indexes()["pod_by_uid"]
    add_index()
    assert indexes()["pod_by_uid"]
