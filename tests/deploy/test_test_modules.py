"""The tests' own order: what several test modules need is in a builders module or in ``tests/support``."""

import ast
from pathlib import Path

from deploy.bootstrap.home import ROOT

MODULES = sorted((ROOT / "tests").rglob("*.py"))


def imported(path: Path) -> set[str]:
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    return {node.module or "" for node in nodes} | {
        f"{node.module}.{name.name}" for node in nodes for name in node.names
    }


def is_of_tests_only(module: str) -> bool:
    name = module.rpartition(".")[2]
    return module.startswith("tests.") and (name.startswith("test_") or name == "conftest")


def test_no_module_imports_a_test_module_or_a_conftest() -> None:
    borrowed = {
        f"{path.relative_to(ROOT)} imports {module}"
        for path in MODULES
        for module in imported(path)
        if is_of_tests_only(module) and (ROOT / f"{module.replace('.', '/')}.py").exists()
    }
    assert borrowed == set()


def test_no_builder_makes_an_identity_from_hash() -> None:
    """``hash()`` of a string differs between processes, and with it every tie that the identity decides."""
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hash"
    ]
    assert calls == []
