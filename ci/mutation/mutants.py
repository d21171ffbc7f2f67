"""Small ways to break a module, one at a time; ci/mutate tries them."""

from __future__ import annotations

import ast
import copy
import difflib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]

COMPARES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
            ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
              ast.Pow: ast.Mult, ast.Mod: ast.Mult}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
Home = tuple[str, int]
"""The outermost function that holds a node: its name and first line."""


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield other nodes that could stand in this one's place, each with what was changed."""
    new = copy.copy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in COMPARES:
        new.ops = [COMPARES[type(new.ops[0])](), *new.ops[1:]]
        yield "comparison", new
    elif isinstance(new, ast.BinOp) and type(new.op) in ARITHMETIC and not text_of(new):
        new.op = ARITHMETIC[type(new.op)]()
        yield "arithmetic", new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        yield "and/or", new
        yield from (("half", half) for half in halves(node))
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        yield "not", new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, (bool, int, float)):
        new.value = not new.value if isinstance(new.value, bool) else new.value + 1
        yield "constant", new
    elif isinstance(new, ast.Call) and isinstance(new.func, ast.Name) and new.func.id in CALLS:
        new.func = ast.copy_location(ast.Name(id=CALLS[new.func.id], ctx=ast.Load()), new.func)
        yield "min/max", new
    elif isinstance(new, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
        yield "branches", new
    elif isinstance(new, (ast.If, ast.While)) and is_bare(new.test):
        new.test = ast.UnaryOp(op=ast.Not(), operand=new.test)
        yield "condition", new
    elif isinstance(new, ast.comprehension):
        yield from (("condition", other) for other in filtered(new))


def halves(node: ast.BoolOp) -> Iterator[ast.expr]:
    """Yield a condition without one of its parts."""
    for at in range(len(node.values)):
        rest = [part for n, part in enumerate(node.values) if n != at]
        yield rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(op=node.op, values=rest), node)


def filtered(node: ast.comprehension) -> Iterator[ast.comprehension]:
    """Yield the comprehension with the opposite of a condition."""
    for at, test in enumerate(node.ifs):
        if is_bare(test):
            other = copy.copy(node)
            other.ifs = [*node.ifs[:at], ast.UnaryOp(op=ast.Not(), operand=test), *node.ifs[at + 1 :]]
            yield other


def is_bare(test: ast.expr) -> bool:
    """A condition in which nothing else is broken: a name, a call. What only a type checker imports changes nothing."""
    kinds = (ast.Name, ast.Attribute, ast.Call, ast.NamedExpr, ast.Subscript)
    return isinstance(test, kinds) and getattr(test, "id", "") != "TYPE_CHECKING"


def text_of(node: ast.BinOp) -> bool:
    return any(isinstance(side, (ast.JoinedStr, ast.Constant)) and isinstance(getattr(side, "value", ""), str)
               for side in (node.left, node.right))  # fmt: skip


class Swap(ast.NodeTransformer):
    """Replaces the node of one number, in the order of the walk; annotations are left alone."""

    def __init__(self, number: int) -> None:
        self.number, self.at = number, -1
        self.home: Home | None = None
        self.done: tuple[str, int, Home | None] | None = None

    def visit(self, node: Any) -> Any:
        for what, new in changes(node):
            self.at += 1
            if self.at == self.number:
                self.done = (what, getattr(node, "lineno", None) or node.target.lineno, self.home)
                return new
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self._function(node)
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value else None
            return node
        return self.generic_visit(node)

    def _function(self, node: Any) -> Any:
        """What a function's definition evaluates belongs to the place where it stands."""
        outer = self.home
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [self.visit(default) if default else None for default in node.args.kw_defaults]
        self.home = outer or (node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)]))
        node.body = [self.visit(statement) for statement in node.body]
        self.home = outer
        return node


class Mutant(NamedTuple):
    path: Path
    number: int
    kind: str
    line: int
    home: Home | None
    key: str

    @property
    def module(self) -> str:
        return ".".join(self.path.relative_to(ROOT).with_suffix("").parts)

    def tree(self) -> ast.Module:
        return broken(self.path.read_text(encoding="utf-8"), self.number)[0]

    def difference(self) -> str:
        """Return the changed lines, as Python would write both, in pairs of old and new."""
        old, new = (ast.unparse(tree).splitlines() for tree in (ast.parse(self.path.read_bytes()), self.tree()))
        lines = difflib.ndiff(old, new)
        return "\n".join(f"    {line[0]} {line[2:].strip()}" for line in lines if line[0] in "-+")

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}  {self.kind}"


def broken(source: str, number: int) -> tuple[ast.Module, tuple[str, int, Home | None] | None]:
    """Return the source with the change of one number, and what that was; None if there are not so many."""
    swap = Swap(number)
    return ast.fix_missing_locations(swap.visit(ast.parse(source))), swap.done


def mutants(path: Path) -> Iterator[Mutant]:
    source = path.read_text(encoding="utf-8")
    number = 0
    while True:
        tree, done = broken(source, number)
        if done is None:
            return
        digest = hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:20]
        yield Mutant(path, number, *done, f"{path.relative_to(ROOT)}#{digest}")
        number += 1


def unchanged(path: Path) -> Iterator[Mutant]:
    """Yield each function of a module without a change: if one of these is killed, a test is at fault."""
    homes = {mutant.home: mutant.line for mutant in mutants(path) if mutant.home is not None}
    for home, line in homes.items():
        yield Mutant(path, -1, "nothing", line, home, f"{path.relative_to(ROOT)}#nothing:{home[0]}:{home[1]}")
