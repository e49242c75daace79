"""A parameter has one default, wherever it has one."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "specref"
COMMON: Mapping[str, str] = {
    "alpha": "ALPHA",
    "beta": "BETA",
    "blocking": "True",
    "chunk": "CHUNK",
    "closed": "False",
    "context": "()",
    "draft_cost": "0",
    "greedy": "False",
    "look": "1",
    "lookahead": "1",
    "max_new_tokens": "64",
    "not_applicable": "0",
    "padding": "0",
    "ragged": "True",
    "replacement": "False",
    "seconds": "0",
    "seed": "0",
    "strict": "False",
    "temperature": "1",
    "timeout": "TIMEOUT",
    "tolerance": "0",
    "uniform_bits": "BITS",
    "use_cache": "True",
}
# Where text is generated, more is drafted.
OTHERWISE = {
    ("lookahead", "contrib.engines.mlx_lm.load_engine"): "3",
    ("lookahead", "contrib.engines.transformers_text.load_engine"): "3",
    ("lookahead", "contrib.engines.transformers_generate.__init__"): "4",
    ("lookahead", "contrib.engines.transformers_text.engine_of_folders"): "3",
    ("lookahead", "torch_backend.generation.generate"): "4",
    ("lookahead", "contrib.real_models.generating.__init__"): "LOOKAHEAD",
    ("lookahead", "contrib.real_models.record.Case"): "LOOKAHEAD",
    ("lookahead", "zoo.batch_loops.as_generate"): "LOOKAHEAD",
}


def defaults(source: str, module: str) -> Iterator[tuple[str, str, str]]:
    """Each (parameter, where, default) that is a number, a truth value, or a tuple."""
    for node in ast.walk(ast.parse(source)):
        given: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.FunctionDef):
            named = [*node.args.posonlyargs, *node.args.args]
            last = named[len(named) - len(node.args.defaults) :]
            given += zip([one.arg for one in last], node.args.defaults, strict=True)
            only = [one.arg for one in node.args.kwonlyargs]
            given += zip(only, node.args.kw_defaults, strict=True)
        elif isinstance(node, ast.ClassDef) and "dataclass" in map(_name, node.decorator_list):
            given += [
                (field.target.id, field.value)
                for field in node.body
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            ]
        for name, value in given:
            plain = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
            if plain or isinstance(value, ast.Tuple | ast.UnaryOp | ast.BinOp | ast.Name):
                assert value is not None
                yield name, f"{module}.{getattr(node, 'name', '')}", ast.unparse(value)


def _name(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(called, "id", "")


def differing(found: Iterator[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Those that are not as in the tables."""
    return [
        (name, where, default)
        for name, where, default in found
        if name in COMMON
        and default.removesuffix(".0") != OTHERWISE.get((name, where), COMMON[name])
    ]


def everywhere() -> Iterator[tuple[str, str, str]]:
    for file in sorted(ROOT.rglob("*.py")):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        yield from defaults(file.read_text(encoding="utf-8"), module)


@pytest.mark.deep
def test_a_parameter_has_one_default_wherever_it_has_one() -> None:
    found = list(everywhere())
    assert differing(iter(found)) == []
    counted = Counter(name for name, _, _ in found if name in COMMON)
    assert set(counted) == set(COMMON)
    assert min(counted.values()) > 1
    assert {(name, where) for name, where, _ in found} >= set(OTHERWISE)


def test_another_default_is_noticed() -> None:
    plain, other = "def f(*, look: int = 1): ...", "def g(x, look=2, own=3): ..."
    field = "@dataclass(frozen=True)\nclass A:\n    x: int\n    strict: bool = True\n"
    assert differing(defaults(plain, "m")) == []
    assert differing(defaults(f"{plain}\n{other}\n{field}", "m")) == [
        ("look", "m.g", "2"),
        ("strict", "m.A", "True"),
    ]
