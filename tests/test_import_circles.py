"""No module of warpline imports, by whatever way, one that imports it."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

grimp = pytest.importorskip("grimp")


def test_there_are_no_import_circles() -> None:
    """Imports inside functions count; those for type checkers alone never run. The package itself loads the rest late."""
    graph = grimp.build_graph("warpline", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules - {"warpline"}}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))
