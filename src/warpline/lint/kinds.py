"""Where the value of each expression lives: on the GPU, on the host, in a module, or unknown.

One walk in the order of the source, with one table of names per function. Nothing is executed, and what the source does
not tell is unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from warpline.lint.names import ImportedNames
from warpline.lint.words import (
    ABOUT,
    FACTORIES,
    GRADIENT_NORMS,
    HOST_FUNCTIONS,
    HOST_MODULES,
    METADATA,
    NO_VALUE,
    SYNCING_TESTS,
    TO_HOST,
    WORK_METHODS,
    WRAPPERS,
    asks,
)

ValueKind = Literal["gpu", "host", "module", "device", "unknown"]


class Kinds:
    """The kind of every expression of a file."""

    def __init__(self, tree: ast.Module, names: ImportedNames) -> None:
        self._names = names
        self._known: dict[int, ValueKind] = {}
        self._shared: dict[str, ValueKind] = {}
        self._tables: list[dict[str, ValueKind]] = [self._shared]
        self._moved_modules(tree)
        self._block(tree.body)

    def of(self, node: ast.AST) -> ValueKind:
        """The kind of an expression."""
        return self._known.get(id(node), "unknown")

    def is_work(self, node: ast.AST) -> bool:
        """Whether evaluating the node itself (not its parts) enqueues GPU work."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Subscript):  # kernel[grid](…)
                return self.of(node.func.value) == "unknown" and bool(node.args)
            if isinstance(node.func, ast.Attribute) and node.func.attr in WORK_METHODS:
                return True
            full = self._names.full(node.func)
            on_gpu = any(self.of(argument) == "gpu" for argument in node.args)
            return self.of(node) == "gpu" or full == "torch.cuda.stream" or (full.startswith("torch.") and on_gpu)
        return isinstance(node, ast.BinOp) and self.of(node) == "gpu"

    def _moved_modules(self, tree: ast.Module) -> None:
        """`x.cuda()` as a statement, or `x = x.to("cuda")` of what is called elsewhere: a module on the GPU."""
        called = {self._names.dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            value = node.value if isinstance(node, ast.Expr | ast.Assign) else None
            own = isinstance(node, ast.Expr) or (
                isinstance(node, ast.Assign)
                and isinstance(value, ast.Call)
                and isinstance(value.func, ast.Attribute)
                and self._names.dotted(node.targets[0]) == self._names.dotted(_root(value))
                and self._names.dotted(_root(value)) in called
            )
            while own and isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                if value.func.attr == "cuda" or (value.func.attr == "to" and self._to_gpu(value)):
                    self._shared[self._names.dotted(_root(value))] = "module"
                    break
                value = value.func.value

    # Statements, in order.

    def _block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            table: dict[str, ValueKind] = {}
            for argument in arguments:
                if argument.arg in {"device", "dev"}:
                    table[argument.arg] = "device"
                elif argument.arg != "self" and self._shared.get(argument.arg) != "module":
                    table[argument.arg] = "unknown"
            self._tables.append(table)
            self._block(node.body)
            self._tables.pop()
        elif isinstance(node, ast.ClassDef):
            self._block(node.body)
        elif isinstance(node, ast.Assign):
            kind = self._visit(node.value)
            for target in node.targets:
                self._assign(target, node.value, kind)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value, self._visit(node.value))
        elif isinstance(node, ast.AugAssign):
            kind = _join((self._visit(node.target), self._visit(node.value)))
            self._assign(node.target, node.value, kind)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._visit(node.iter)
            self._bind(node.target, node.iter)
            self._block([*node.body, *node.orelse])
        else:
            self._parts(node)

    def _parts(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self._statement(child)
            elif isinstance(child, ast.expr):
                self._visit(child)
            else:
                if isinstance(child, ast.withitem):
                    self._visit(child.context_expr)
                self._parts(child)

    def _assign(self, target: ast.expr, value: ast.expr, kind: ValueKind) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for place, inner in enumerate(target.elts):
                own = values[place] if len(values) == len(target.elts) else None
                self._assign(inner, own or value, self.of(own) if own is not None else kind)
            return
        if isinstance(target, ast.Starred):
            target = target.value
        name = self._names.dotted(target)
        if not name:
            self._visit(target)
            return
        table = self._shared if "." in name else self._tables[-1]
        table[name] = kind
        self._known[id(target)] = kind

    def _bind(self, target: ast.expr, iterable: ast.expr) -> None:
        """Names of a `for`: numbers of enumerate and keys of items are on the host."""
        kind = self._element(iterable)
        if isinstance(target, ast.Tuple) and isinstance(iterable, ast.Call) and len(target.elts) == 2:
            called = self._names.last(iterable.func)
            if called in {"enumerate", "items"} or called.startswith("named_"):
                first, second = target.elts
                self._assign(first, iterable, "host")
                if called == "enumerate" and iterable.args:
                    self._bind(second, iterable.args[0])
                else:
                    self._assign(second, iterable, kind)
                return
        if isinstance(iterable, ast.Call) and self._names.last(iterable.func) in {"zip", "product"}:
            if isinstance(target, ast.Tuple) and len(target.elts) == len(iterable.args):
                for inner, part in zip(target.elts, iterable.args, strict=True):
                    self._bind(inner, part)
                return
            kind = "unknown"
        self._assign(target, iterable, kind)

    def _element(self, iterable: ast.expr) -> ValueKind:
        kind = self.of(iterable)
        if isinstance(iterable, ast.Call):
            if self._names.last(iterable.func) in {"parameters", "named_parameters"}:
                return "gpu"
            if isinstance(iterable.func, ast.Name) and iterable.func.id in {"tqdm", "list", "tuple", "reversed"}:
                return self._element(iterable.args[0]) if iterable.args else "unknown"
            if self._names.last(iterable.func) == "items":
                return "unknown"
        return kind if kind in {"gpu", "host"} else "unknown"

    # Expressions.

    def _visit(self, node: ast.expr) -> ValueKind:
        kind = self._kind(node)
        self._known[id(node)] = kind
        return kind

    def _kind(self, node: ast.expr) -> ValueKind:
        if isinstance(node, ast.Name):
            return self._look_up(node.id)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Attribute):
            base = self._visit(node.value)
            known = self._look_up(self._names.dotted(node)) if self._names.dotted(node) else "unknown"
            if known != "unknown":
                return known
            if node.attr in METADATA or asks(node.attr):
                return "host"
            return base if base in {"gpu", "host"} and not node.attr.startswith("_") else "unknown"
        if isinstance(node, ast.Lambda):
            self._visit(node.body)
            return "unknown"
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self._comprehension(node)
        kinds = [self._visit(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if isinstance(node, ast.Constant):
            return "device" if isinstance(node.value, str) and node.value.partition(":")[0] == "cuda" else "host"
        if isinstance(node, ast.IfExp):
            return _either([self.of(node.body), self.of(node.orelse)])
        if isinstance(node, ast.Compare) and any(
            isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops
        ):
            return "host"
        if isinstance(node, ast.Subscript):
            return self.of(node.value)
        if isinstance(node, ast.JoinedStr | ast.FormattedValue):
            return "host"
        return _join(kinds)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> ValueKind:
        for generator in node.generators:
            self._visit(generator.iter)
            self._bind(generator.target, generator.iter)
            for test in generator.ifs:
                self._visit(test)
        if isinstance(node, ast.DictComp):
            self._visit(node.key)
            return self._visit(node.value)
        return self._visit(node.elt)

    def _look_up(self, name: str) -> ValueKind:
        for table in reversed(self._tables):
            if name in table:
                return table[name]
        return "unknown"

    def _call(self, node: ast.Call) -> ValueKind:
        arguments = [self._visit(argument) for argument in node.args]
        arguments += [self._visit(keyword.value) for keyword in node.keywords]
        full = self._names.full(node.func)
        if isinstance(node.func, ast.Attribute) and not full:
            return self._method(node, self._visit(node.func.value), arguments)
        called = self._visit(node.func)
        if full.startswith("torch."):
            return self._torch(node, full, arguments)
        if full.partition(".")[0] in HOST_MODULES:
            return "host"
        name = self._names.last(node.func)
        if isinstance(node.func, ast.Name) and name in HOST_FUNCTIONS:
            return "host"
        if called == "module":
            return "gpu"
        if name[:1].isupper() or asks(name) or name == "getattr":
            return "unknown"
        return "gpu" if "gpu" in arguments else "unknown"

    def _torch(self, node: ast.Call, full: str, arguments: list[ValueKind]) -> ValueKind:
        name = full.rpartition(".")[2]
        if full == "torch.device":
            return "device"
        if full in WRAPPERS:
            return arguments[0] if arguments else "unknown"
        if full in GRADIENT_NORMS:
            return "gpu"
        device = next((self.of(word.value) for word in node.keywords if word.arg == "device"), None)
        if name in FACTORIES and full.count(".") == 1:
            where = next((word.value for word in node.keywords if word.arg == "device"), None)
            if where is None:
                return "host"
            return "host" if isinstance(where, ast.Constant) and where.value == "cpu" else "gpu"
        if full.startswith("torch.nn.") and name[:1].isupper():
            return "module" if device == "device" else "unknown"
        if (
            name in NO_VALUE
            or name in SYNCING_TESTS
            or asks(name)
            or full.startswith(("torch.cuda.", "torch.distributed.", "torch.optim.", "torch.utils."))
        ):
            return "host"
        return _join(arguments) if arguments else "unknown"

    def _method(self, node: ast.Call, base: ValueKind, arguments: list[ValueKind]) -> ValueKind:
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        if name == "cuda" or (name == "to" and self._to_gpu(node)):
            return "module" if base == "module" or _constructs(node.func.value) else "gpu"
        if name in TO_HOST | ABOUT | SYNCING_TESTS or asks(name) or (name == "to" and _names_cpu(node)):
            return "host"
        if self._names.dotted(node.func) and self._look_up(self._names.dotted(node.func)) == "module":
            return "gpu"
        if base == "gpu" or (base == "unknown" and name in {"matmul", "mm"} and "gpu" in arguments):
            return "gpu"
        if base == "module":
            return "module" if name in {"eval", "train", "half", "float", "bfloat16", "to"} else "unknown"
        return base if base == "host" else "unknown"

    def _to_gpu(self, node: ast.Call) -> bool:
        """Whether `.to(…)` names a GPU, or a device that is not known to be the CPU."""
        values = [*node.args, *(word.value for word in node.keywords if word.arg == "device")]
        return any(
            self._look_up(self._names.dotted(value)) == "device"
            or (isinstance(value, ast.Constant) and str(value.value).partition(":")[0] == "cuda")
            or self._names.last(value) == "device"
            for value in values
        )


def _root(node: ast.expr) -> ast.expr:
    """What a chain of method calls begins with: `model` in `model.cuda().eval()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _constructs(node: ast.expr) -> bool:
    """Whether an expression makes an object: `Net()`, `resnet50()` of torchvision.models, `load_model()`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return _makes(node.func.id)
        if not isinstance(node.func, ast.Attribute):
            return False
        dotted = ast.unparse(node.func)
        if _makes(node.func.attr) or "models." in dotted or "from_pretrained" in dotted or "DataParallel" in dotted:
            return True
        node = node.func.value
    return False


def _makes(name: str) -> bool:
    """Whether a function's name says that it makes a module: `Net`, `load_model`, `build_network`."""
    verb, _, thing = name.partition("_")
    return name[:1].isupper() or (verb in {"load", "get", "create", "build", "make"} and thing in {"model", "network"})


def _names_cpu(node: ast.Call) -> bool:
    return any(isinstance(value, ast.Constant) and value.value == "cpu" for value in node.args)


def _join(kinds: list[ValueKind] | tuple[ValueKind, ...]) -> ValueKind:
    if "gpu" in kinds:
        return "gpu"
    return "host" if kinds and all(kind in {"host", "device"} for kind in kinds) else "unknown"


def _either(kinds: list[ValueKind]) -> ValueKind:
    if "device" in kinds:
        return "device"
    return _join(kinds)
