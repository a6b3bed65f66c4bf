"""How a long list of jobs is found without reading whole rows: an index wide enough to answer alone, and how it is chosen.

SQLite takes any index on what is asked for and then reads every row it leads to, manifest and all, in another order; a walk
along the wide index costs a tenth. PostgreSQL decides well by itself. Knows nothing of who asks for what.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models.fields.json import (  # type: ignore[attr-defined]  # the stubs are of Django 6, which moved it
    KeyTextTransform,
    compile_json_path,
)
from django.db.models.query_utils import DeferredAttribute
from django.db.models.sql.compiler import SQLCompiler

if TYPE_CHECKING:
    from jobs.models.job import Job  # noqa: F401


class Wide(models.Index):
    """On SQLite with the labels, too: PostgreSQL refuses index entries of more than 2,700 bytes, which labels may have."""

    def create_sql(
        self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor, using: str = "", **options: Any
    ) -> Any:
        if schema_editor.connection.vendor != "sqlite":
            return super().create_sql(model, schema_editor, using, **options)
        return models.Index(fields=[*self.fields, "labels"], name=self.name).create_sql(
            model, schema_editor, using, **options
        )


class Walked(models.Func):
    """The column as it is, but for SQLite nothing an index can be searched by."""

    template = "%(expressions)s"
    arity = 1

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **options: Any) -> Any:
        return self.as_sql(compiler, connection, template="+%(expressions)s", **options)


class Label(KeyTextTransform):
    """A label as plain text. Labels are texts: SQLite need not ask of each what it is."""

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: Any) -> Any:
        sql, params, keys = self.preprocess_lhs(compiler, connection)
        return f"JSON_EXTRACT({sql}, %s)", (*params, compile_json_path(keys))


class _Code(DeferredAttribute):
    """Read from the job's reason, so that no writer can make the two differ."""

    def __get__(self, job: Any, owner: Any = None) -> Any:
        return self if job is None else code_of(job.reason)

    def __set__(self, job: Any, code: Any) -> None:
        job.__dict__[self.field.attname] = code


class CodeField(models.CharField):  # type: ignore[type-arg]  # not generic at run time
    """The code of the reason as a column. Not a generated one: SQLite reads the whole row for those."""

    descriptor_class = _Code
    follows = "reason"
    """For `fleet.db.bulk`: written whenever that is."""


class JobRows(models.QuerySet["Job"]):
    def update(self, **changes: Any) -> int:
        return super().update(**with_code(changes))


def with_code(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {**changes, "reason_code": code_of(changes["reason"])} if "reason" in changes else {**changes}


def code_of(reason: Any) -> str | None:
    return reason.get("code") if isinstance(reason, dict) else None
