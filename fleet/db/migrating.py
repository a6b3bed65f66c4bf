"""Operations of migrations that may run while the former version serves: they lock no table that it writes to for long."""

from typing import Any

from django.db.migrations import AddIndex
from django.db.migrations.state import ProjectState

_KNOWN = "SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = %s"
_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


class AddIndexOnline(AddIndex):
    """Adds an index; on PostgreSQL beside writers, so its migration is not ``atomic``. Does nothing where the index is already.

    An interrupted build leaves an index that nothing uses: it is dropped and built anew.
    """

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model, connection = to_state.apps.get_model(app_label, self.model_name), schema_editor.connection
        if not self.allow_migrate_model(connection.alias, model):
            return
        if connection.vendor != "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(
                    _KNOWN, [self.index.name]
                )  # Django's introspection cannot read a table with a generated column
                row = cursor.fetchone()
            if row is None:
                schema_editor.add_index(model, self.index)
            return
        with connection.cursor() as cursor:
            cursor.execute(_VALID, [self.index.name])
            row = cursor.fetchone()
        if row == (True,):
            return
        if row is not None:
            schema_editor.remove_index(model, self.index, concurrently=True)
        schema_editor.add_index(model, self.index, concurrently=True)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        model, connection = from_state.apps.get_model(app_label, self.model_name), schema_editor.connection
        if self.allow_migrate_model(connection.alias, model):
            options = {"concurrently": True} if connection.vendor == "postgresql" else {}
            schema_editor.remove_index(model, self.index, **options)
