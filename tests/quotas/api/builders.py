"""The quota tree that the tests of its API begin with, and an edit of it."""

from tests.quotas.core.builders import manifest, quota

TREE = "/api/v1/quota/tree/"
START = manifest(quota("root", 10, 10, quota("a", 4, 8, namespaces=["default"]), quota("b", 4, 9)))


def edit(path="root/a", **fields):
    return {"op": "edit", "path": path, "set": fields}
