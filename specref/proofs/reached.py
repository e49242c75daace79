"""Which statements of a rule's file its runs reach: code that never ran is named with a verdict.

Functions of the file that the rule may call get marks, one for each statement and each arm of an
expression, while they are watched. A mark is taken out once it was met, so only code that did not
run yet costs anything, and runs in worker processes are seen, too: they note marks in a file.

Code that can only raise gets no marks, as no token comes from there; it does where a function of
the file catches anything. What other files catch is not looked for.
"""

import ast
import builtins
import functools
import inspect
import tempfile
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any, TypeAlias

Place: TypeAlias = tuple[int, int, int, int]
"""First and last line, first and last column, of a statement or an arm."""
Key: TypeAlias = tuple[int, str]
"""First line and name of a function."""
MARK = "specref reached"
"""A constant of marked code, in whose place the object is that notes marks."""
CONSTRUCTORS = ("__new__", "__init__", "__post_init__")
"""What ran for an object before it was watched."""
BLOCKS = ("body", "orelse", "finalbody")
"""Attributes of statements that hold statements."""
NESTED = 3
"""Containers in containers that are looked through for functions."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CATCHES = (ast.ExceptHandler, ast.With, ast.AsyncWith)
LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)
CAUGHT = (StopIteration, StopAsyncIteration, IndexError, AttributeError)
"""What Python itself catches: at the end of a loop, in `getattr` with a default."""


@dataclass(frozen=True)
class Unreached:
    """What never ran of a file.

    Attributes
    ----------
    file : str
    lines : tuple of int
        Lines of which nothing ran.
    parts : tuple of int
        Lines of which a part ran and another did not.

    Examples
    --------
    >>> str(Unreached("my_rule.py", (12, 13, 15), (20,)))
    '3 lines never ran: my_rule.py:12-13, 15; a part of line 20 never ran'
    >>> bool(Unreached("my_rule.py", (), ()))
    False
    """

    file: str
    lines: tuple[int, ...]
    parts: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.lines or self.parts)

    def __str__(self) -> str:
        count = len(self.lines)
        whole = f"{count} line{'s' * (count > 1)} never ran: {self.file}:{runs(self.lines)}"
        many = "s" * (len(self.parts) > 1)
        of = "" if self.lines else f" of {self.file}"
        part = f"a part of line{many} {runs(self.parts)}{of} never ran"
        return "; ".join([whole] * bool(self.lines) + [part] * bool(self.parts))


def runs(numbers: Sequence[int]) -> str:
    """Numbers in words, neighbours joined."""
    told: list[list[int]] = []
    for number in numbers:
        if told and told[-1][-1] == number - 1:
            told[-1] = [told[-1][0], number]
        else:
            told.append([number])
    return ", ".join("-".join(map(str, one)) for one in told)


class Reached:
    """A rule that notes which of its statements run, in this process and where it is sent."""

    def __init__(self, step: Callable[..., Any], notes: Path) -> None:
        functools.update_wrapper(self, step, updated=())
        self.step, self.notes = step, notes
        found = functions_of(step)
        self._codes = {function: function.__code__ for function in found}
        self._wanted = {key_of(code) for code in self._codes.values()}
        others = any(map(_is_watched, self._codes.values()))  # as in a proof within a proof
        self._program = _source(found[0]) if found and not others else ""
        self._met: set[tuple[int, ...]] = set()
        self._marked: set[Place] = set()
        self._more = False
        self._mark()
        self.places = frozenset(self._marked)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        try:
            return self.step(*arguments, **options)
        finally:
            if self._more:
                self._mark()

    def __reduce__(self) -> tuple[Any, ...]:
        return _sent, (self.step, self.notes)

    def restore(self) -> None:
        """Take all marks out."""
        for function, code in self._codes.items():
            function.__code__ = code

    def _mark(self) -> None:
        """Have marks at the places that were not met yet, and at no others.

        Other threads may run the functions meanwhile: at no moment is one without its marks.
        """
        self._more = False
        if not self._program:
            return
        parsed = ast.parse(self._program)
        marks = Marks(self._wanted, self._met, _catches(parsed))
        program = ast.fix_missing_locations(marks.visit(parsed))
        file = next(iter(self._codes.values())).co_filename
        inner = [*_codes_in(compile(program, file, "exec", dont_inherit=True))]
        self._marked = marks.places
        for function, own in self._codes.items():
            same = [code for code in inner if key_of(code) == key_of(own)]
            if not marks.places:
                function.__code__ = own
            elif len(same) == 1 and same[0].co_freevars == own.co_freevars:
                function.__code__ = _with_constant(same[0], self)
            else:  # two functions of one name in a line: which is which cannot be told
                self._marked = {one for one in self._marked if one[0] not in _lines_of(own)}

    def note(self, *place: int) -> None:
        """Note that a place was reached."""
        if place not in self._met:
            self._met.add(place)
            self._more = True
            with self.notes.open("a", encoding="utf-8") as file:
                file.write(f"{' '.join(map(str, place))}\n")


def _sent(step: Callable[..., Any], notes: Path) -> Reached:
    """The rule as a worker calls it: marked once, whatever number of jobs it gets."""
    kept = _kept(notes)
    if not kept:
        kept.append(Reached(step, notes))
    return kept[0]


@functools.cache
def _kept(notes: Path) -> list[Reached]:
    return []


class Marks(ast.NodeTransformer):
    """Puts marks into the functions that are wanted, but for places that were met.

    * `caught`: Whether exceptions may be caught: then code that can only raise gets marks, too.
    """

    def __init__(self, wanted: Set[Key], met: Set[tuple[int, ...]], caught: bool) -> None:
        self.wanted, self.met, self.caught = wanted, met, caught
        self.places: set[Place] = set()
        self._raising: set[ast.AST] = set()
        self._inside = 0

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Mark the parts of a node that may be left out when it runs."""
        if node in self._raising:
            return node
        for name in BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and not self.caught:
                self._raising |= set(_raising(block))
        inside = _key_of_node(node) in self.wanted
        self._inside += inside
        super().generic_visit(node)
        if self._inside:
            self._mark_parts(node)
        self._inside -= inside
        return node

    def _mark_parts(self, node: ast.AST) -> None:
        match node:
            case ast.IfExp():
                node.body, node.orelse = self._arm(node.body), self._arm(node.orelse)
            case ast.BoolOp() if not _is_marked(node):
                node.values[1:] = map(self._arm, node.values[1:])
            case ast.Lambda():
                node.body = self._arm(node.body)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                node.elt = self._arm(node.elt)
            case ast.DictComp():
                node.key = self._arm(node.key)
        for name in BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, [new for one in block for new in self._statement(one)])

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        said = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if said or isinstance(node, (ast.Global, ast.Nonlocal)) or node in self._raising:
            return [node]  # a docstring, what runs nowhere, or what emits nothing
        header = isinstance(getattr(node, "body", None), list)
        call = self._call(node, node.lineno if header else node.end_lineno)
        return [node] if call is None else [ast.copy_location(ast.Expr(call), node), node]

    def _arm(self, node: ast.expr) -> ast.expr:
        call = self._call(node, node.end_lineno)
        if call is None:
            return node
        return ast.copy_location(ast.BoolOp(ast.Or(), [call, node]), node)

    def _call(self, node: ast.stmt | ast.expr, last: int | None) -> ast.expr | None:
        place = (node.lineno, last or node.lineno, node.col_offset, node.end_col_offset or 0)
        if place in self.met:
            return None
        self.places.add(place)
        note = ast.Attribute(ast.Constant(MARK), "note", ast.Load())
        call = ast.Call(note, [ast.Constant(one) for one in place], [])
        return ast.copy_location(call, node)


def _catches(program: ast.Module) -> bool:
    """Whether a function of a file may catch an exception that another one raises."""
    functions = [one for one in ast.walk(program) if isinstance(one, FUNCTIONS)]
    return any(isinstance(one, CATCHES) for each in functions for one in ast.walk(each))


def _raising(block: Sequence[ast.AST]) -> Sequence[ast.AST]:
    """The last statements of a block, as many as can only raise what Python does not catch."""
    match block:
        case [*_, ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name)))]:
            kind = getattr(builtins, name, None)
            raises = isinstance(kind, type) and not issubclass(kind, CAUGHT)
        case [*_, ast.If(body=body, orelse=[_, *_] as orelse)]:
            raises = len(_raising(body)) == len(body) and len(_raising(orelse)) == len(orelse)
        case _:
            return ()
    first = len(block)
    while raises and first and not any(isinstance(x, LEAVES) for x in ast.walk(block[first - 1])):
        first -= 1
    return block[first:]


def _is_marked(node: ast.BoolOp) -> bool:
    match node.values[0]:
        case ast.Call(func=ast.Attribute(value=ast.Constant(value="specref reached"))):
            return True
    return False


def _is_watched(code: CodeType) -> bool:
    every = (code, *_codes_in(code))
    return any(isinstance(constant, Reached) for one in every for constant in one.co_consts)


def _with_constant(code: CodeType, noting: Reached) -> CodeType:
    """The same code, with an object in place of MARK."""

    def given(one: object) -> object:
        if isinstance(one, CodeType):
            return _with_constant(one, noting)
        return noting if isinstance(one, str) and one == MARK else one

    return code.replace(co_consts=tuple(map(given, code.co_consts)))


def key_of(code: CodeType) -> Key:
    """What tells a function apart from others of its file."""
    return code.co_firstlineno, code.co_name


def _key_of_node(node: ast.AST) -> Key | None:
    if isinstance(node, ast.Lambda):
        return node.lineno, "<lambda>"
    if not isinstance(node, FUNCTIONS):
        return None
    return min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.name


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from _codes_in(inner)


def _lines_of(code: CodeType) -> set[int]:
    every = [code, *_codes_in(code)]
    return {line for one in every for _, _, line in one.co_lines() if line}


def _source(function: FunctionType) -> str:
    """The file of a function; "" if it cannot be read."""
    try:
        with tokenize.open(function.__code__.co_filename) as file:
            return file.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ""


def functions_of(step: Callable[..., Any]) -> tuple[FunctionType, ...]:
    """The function that a rule is, and those of the same file that it may call.

    Empty if it is no function in Python, such as a compiled one.
    """
    first = next(_functions_in(inspect.unwrap(step), NESTED), None)
    if first is None:
        return ()
    found: dict[FunctionType, None] = {}
    left: list[object] = [step, first]
    while left:
        for one in _functions_in(left.pop(), NESTED):
            if one.__code__.co_filename == first.__code__.co_filename and one not in found:
                found[one] = None
                left += _named_by(one)
    return tuple(found)


def _named_by(function: FunctionType) -> Iterator[object]:
    """The objects that the code of a function names, closes over, or has as defaults."""
    for code in (function.__code__, *_codes_in(function.__code__)):
        for name in code.co_names:
            yield function.__globals__.get(name)
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty one
            yield cell.cell_contents
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()


def _functions_in(one: object, depth: int) -> Iterator[FunctionType]:
    """The functions in Python behind an object: itself, wrapped, a method, in a container."""
    if isinstance(one, FunctionType):
        yield one
    if depth == 0 or one is None or isinstance(one, ModuleType):
        return
    inner: list[object] = [vars(one).get("__wrapped__")] if hasattr(one, "__dict__") else []
    if isinstance(one, (functools.partial, functools.partialmethod)):
        inner += [one.func, *one.args]
    elif isinstance(one, (MethodType, staticmethod, classmethod)):
        inner.append(one.__func__)
    elif isinstance(one, property):
        inner += [one.fget, one.fset]
    elif isinstance(one, type):
        inner += vars(one).values()
    elif isinstance(one, Mapping):
        inner += one.values()
    elif isinstance(one, (tuple, list, set, frozenset)):
        inner += one
    elif not isinstance(one, FunctionType):
        inner += [each for name, each in vars(type(one)).items() if name not in CONSTRUCTORS]
    for each in inner:
        yield from _functions_in(each, depth - 1)


@contextmanager
def watched(
    step: Callable[..., Any], executor: Executor | None = None
) -> Iterator[tuple[Callable[..., Any], Callable[[], Unreached | None]]]:
    """A rule that is watched, and a function that says what of its file has not run so far.

    That is None for a rule whose source cannot be read, or that is watched already, and where it
    may run on other machines.
    """
    if not isinstance(executor, (ProcessPoolExecutor, ThreadPoolExecutor, NoneType)):
        yield step, lambda: None
        return
    with tempfile.TemporaryDirectory(prefix="specref-") as folder:
        notes = Path(folder, "reached")
        notes.touch()
        reached = Reached(step, notes)
        try:
            yield (reached, lambda: unreached(reached)) if reached.places else (step, lambda: None)
        finally:
            reached.restore()


def unreached(reached: Reached) -> Unreached:
    """The places that have marks, and were reached nowhere."""
    lines = reached.notes.read_text(encoding="utf-8").splitlines()
    met = {tuple(map(int, line.split())) for line in lines}
    never = [one for one in reached.places if one not in met]
    ran = {one[0] for one in reached.places if one in met}
    untouched = {line for first, last, *_ in never for line in range(first, last + 1)} - ran
    parts = {first for first, *_ in never if first in ran}
    file = Path(functions_of(reached.step)[0].__code__.co_filename).name
    return Unreached(file, tuple(sorted(untouched)), tuple(sorted(parts)))
