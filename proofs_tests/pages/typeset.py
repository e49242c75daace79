"""The acceptance formula of a rule as LaTeX, from the lines of Python that a test evaluates."""

import ast
import re
from collections.abc import Mapping

SYMBOLS: Mapping[str, tuple[str, str]] = {
    "p": ("p", "the target's distribution"),
    "q": ("q", "the draft model's distribution"),
    "x": ("x", "a draft token"),
    "S": ("S", "the draft tokens of the position"),
    "V": ("V", "the vocabulary"),
    "T": ("T", "the target's vocabulary"),
    "D": ("D", "the draft model's vocabulary"),
    "W": ("W", "p over q of all tokens so far, $W_0 = 1$"),
    "psi": (r"\psi", "the distribution of the target token that the drafted text spells next"),
    "kappa": (r"\kappa", "the kernel: a distribution of drafts that spell x"),
    "d": ("d", "the draft"),
    "Q": ("Q", "the probability of a draft, or that all draft tokens are in a set"),
    "h": ("h", "the likeliest token of q"),
    "rho": (r"\rho", "k-SEQ's factor, from 1 to the number of draft tokens of the position"),
    "F": ("F", "the tokens that the companion passes"),
    "x_1": ("x_1, x_2", "the draft tokens of the position, in the order of drawing"),
    "y_1": ("y_1, y_2", "the draft tokens below $x_1$ and $x_2$"),
    "p_1": ("p_1, p_2", "the target's distributions after $x_1$ and $x_2$"),
    "q_1": ("q_1, q_2", "the draft model's distributions there"),
    "r": ("p'", "what $x_2$ is compared with once $x_1$ is rejected: the residual of p and q"),
    "s": ("q'", "the draft model's distribution without the first draft token, or without h"),
    "t": ("q'", "the draft model's distribution on the tokens that the target has, too"),
    "a_1": (
        "a_1, a_2",
        "the probability that $x_1$ is accepted, and $x_2$ once $x_1$ is rejected",
    ),
    "b_1": (
        "b_1, b_2",
        "the probability that $x_1 y_1$ is accepted, and $x_2 y_2$ once $x_1$ is not",
    ),
}
"""{name: (LaTeX, what it is)}; of `_1` that of both."""
STATE = "A", "W"
"""What a position hands on to the next."""
SIGNS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: r"\,",
    ast.BitAnd: r"\cap",
}
LARGE = {"sum": r"\sum", "prod": r"\prod", "max": r"\max"}


def latex(formula: str) -> list[str]:
    """Each line of a formula as LaTeX; with an index where a position reads that before it.

    >>> latex("A = min(1, A * p[x] / q[x])")
    ['A_i = \\\\min\\\\left(1, \\\\frac{A_{i-1} \\\\, p(x)}{q(x)}\\\\right)']
    >>> latex("A = p_1[y_1] * p[x_1]")
    ['A = p_1(y_1) \\\\, p(x_1)']
    >>> latex("A = sum(p[y] for y in S)")
    ['A = \\\\sum_{y \\\\in S} p(y)']
    """
    told: list[str] = []
    done: set[str] = set() if indexed(formula) else {*STATE}
    for line in ast.parse(formula).body:
        if not isinstance(line, ast.Assign):
            raise ValueError(f"formula = {formula!r}: expected lines `name = value`")
        (target,) = line.targets
        value = expression(line.value, done)
        done |= {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
        told.append(f"{expression(target, done)} = {value}")
    return told if indexed(formula) else [re.sub(r"\b([AW])_i\b", r"\1", one) for one in told]


def indexed(formula: str) -> bool:
    """Whether a position reads what the one before it hands on.

    >>> indexed("A = A * p[x]"), indexed("A = p[x]")
    (True, False)
    """
    return any(
        isinstance(one, ast.Name) and one.id in STATE
        for line in ast.parse(formula).body
        if isinstance(line, ast.Assign)
        for one in ast.walk(line.value)
    )


def symbols(formula: str) -> list[tuple[str, str]]:
    """(LaTeX, what it is) of the symbols of a formula but A.

    >>> [told for told, _ in symbols("s[y] = q[y] / (1 - q[h])\\nA = A * s[x]")]
    ['q', 'x', 'h', "q'"]
    """
    names = {one.id for one in ast.walk(ast.parse(formula)) if isinstance(one, ast.Name)}
    return [told for name, told in SYMBOLS.items() if name in names]


def expression(node: ast.expr, done: set[str], *, within: bool = False) -> str:
    """A part; `done` are names that this position has; a sum within a product has brackets."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.Name(id=name):
            return symbol(name, done)
        case ast.Subscript(value=value, slice=ast.Tuple(elts=[one, given])):
            spelled, given_ = expression(one, done), expression(given, done)
            return rf"{expression(value, done)}({spelled} \mid {given_})"
        case ast.Subscript():
            return f"{expression(node.value, done)}({expression(node.slice, done)})"
        case ast.Compare(left=left, comparators=[right]):
            return rf"[{expression(left, done)} \in {expression(right, done)}]"
        case ast.BinOp(op=ast.Div()):
            return rf"\frac{{{expression(node.left, done)}}}{{{expression(node.right, done)}}}"
        case ast.BinOp():
            product = isinstance(node.op, ast.Mult)
            sides = (expression(one, done, within=product) for one in (node.left, node.right))
            text = f" {SIGNS[type(node.op)]} ".join(sides)
            return text if product or not within else rf"\left({text}\right)"
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as over]):
            return large(name, over, done, within=within)
        case ast.Call(func=ast.Name(id=name)):
            return rf"\{name}\left({', '.join(expression(one, done) for one in node.args)}\right)"
    raise ValueError(f"{ast.unparse(node)}: expected arithmetic, sums, minima and maxima")


def large(name: str, over: ast.GeneratorExp, done: set[str], *, within: bool) -> str:
    """A sum, a product or a maximum over a set."""
    (loop,) = over.generators
    each = expression(loop.target, done)
    match loop.iter:
        case ast.BinOp(right=ast.Set(elts=[without])):
            members = rf"\neq {expression(without, done)}"
        case ast.Call(func=ast.Name(id="subsets"), args=[whole]):
            members = rf"\subseteq {expression(whole, done)}"
        case _:
            members = rf"\in {expression(loop.iter, done)}"
    body = expression(over.elt, done, within=name != "max")
    if name == "max":
        body = rf"\left({body}\right)"
    text = rf"{LARGE[name]}_{{{each} {members}}} {body}"
    return rf"\left({text}\right)" if within else text


def symbol(name: str, done: set[str]) -> str:
    """A name: what a position hands on has an index, `_1` is one."""
    if name in STATE:
        return f"{name}_i" if name in done else f"{name}_{{i-1}}"
    if "_" in name:
        return name
    told, _ = SYMBOLS.get(name, (name, ""))
    return told
