"""Full names in a program: `DataLoader` is `torch.utils.data.DataLoader` if it was imported from there."""

from __future__ import annotations

import ast


class ImportedNames:
    """The imports of a file, and the full names that follow from them."""

    def __init__(self, tree: ast.Module) -> None:
        self._full: dict[str, str] = {}
        self._modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._modules.add(alias.name.partition(".")[0])
                    name = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._full[alias.asname or name] = name
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self._modules.add(node.module.partition(".")[0])
                for alias in node.names:
                    self._full[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def imports(self, module: str) -> bool:
        """Whether the file imports this top-level module."""
        return module in self._modules

    def dotted(self, node: ast.AST) -> str:
        """A name as written, such as `self.model`; empty for other expressions."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def full(self, node: ast.AST) -> str:
        """A name with its import resolved; empty if it does not begin with an import."""
        first, dot, rest = self.dotted(node).partition(".")
        found = self._full.get(first)
        return f"{found}{dot}{rest}" if found else ""

    def last(self, node: ast.AST) -> str:
        """The last part of a name: `step` for `self.step`."""
        return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
