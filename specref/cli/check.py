"""``specref check``: a user's sampler, judged by the conformance kit."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn, get_args

import click

from specref.cli.cluster import cluster_option
from specref.cli.completion import checks, targets
from specref.cli.options import (
    InSections,
    Option,
    declare_option,
    html_option,
    json_option,
    rule_option,
    timeout_option,
    verbosity,
    workers_option,
    writable,
)
from specref.conformance.options import Profile
from specref.contracts.capabilities import Dtype
from specref.contracts.table import CONTRACTS
from specref.statistics.campaign.levels import ALPHA
from specref.suggestions import did_you_mean

FILE, TABLE = "pyproject.toml", "tool.specref"


class Configured(click.Command):
    """A command whose options have defaults in pyproject.toml, here or in a folder above.

    Keys are the long names of options and arguments, and former names. What is on the command
    line comes first. Files that it names are those of the current folder.
    """

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        extra.setdefault("default_map", configured(self.params, Path.cwd()))
        return super().make_context(info_name, args, parent, **extra)


def configured(parameters: list[click.Parameter], folder: Path) -> Mapping[str, Any]:
    """{parameter: default} from the nearest pyproject.toml that has the table."""
    for place in (folder, *folder.parents):
        file = place / FILE
        if not file.is_file():
            continue
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{file}: {error}") from None
        table = found.get("tool", {}).get("specref")
        if table is not None:
            return _defaults(table, parameters, f"{file} [{TABLE}]")
    return {}


def _defaults(table: Any, parameters: list[click.Parameter], where: str) -> Mapping[str, Any]:
    if not isinstance(table, dict):
        raise ValueError(f"{where}: expected a table")
    known = {_word(name): one for one in parameters for name in (*one.opts, str(one.name))}
    defaults: dict[str, Any] = {}
    for key, value in table.items():
        one = known.get(_word(key))
        if one is None:
            hint = did_you_mean(key, known) or "; expected a long option of specref check"
            raise ValueError(f"{where}: unknown key {key!r}{hint}")
        defaults[str(one.name)] = _values(value) if one.multiple else value
    return defaults


def _values(value: Any) -> list[Any]:
    """The values of an option that may be repeated; a table is NAME=VALUE of each."""
    if isinstance(value, dict):
        return [
            f"{name}={str(one).lower() if isinstance(one, bool) else one}"
            for name, one in value.items()
        ]
    return value if isinstance(value, list) else [value]


def _word(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def shape_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, kind in (("vocabulary", int), ("lookahead", int), ("batch", int)):
        command = click.option(f"--{name}", type=kind, multiple=True, hidden=True)(command)
    known = click.Choice(get_args(Dtype))
    command = click.option("--dtype", type=known, multiple=True, hidden=True)(command)
    return click.option(
        "--shape",
        multiple=True,
        metavar="V=…,K=…,B=…,dtype=…",
        help="Also test V tokens, K draft tokens and B rows (32000, 3 and 4 if not "
        "given), in this dtype; repeat for more.",
    )(command)


class CheckCommand(Configured, InSections):
    sections: ClassVar[Mapping[str, Iterable[str]]] = {
        "What to test": ("contract", "rule", "declare", "shape", "installed"),
        "How much": (
            *("profile", "detect_tv", "time_limit", "only", "skip", "exitfirst", "keep_going"),
            *("alpha", "trials", "seed", "strict"),
        ),
        "Output": (
            *("verbose", "quiet", "json_file", "html_file", "junit", "save", "no_color"),
            *("expected", "texts"),
        ),
        "Running": (),
    }


@click.command("check", cls=CheckCommand)
@click.argument("target", required=False, shell_complete=targets)
@click.option(
    "--installed", is_flag=True, help="Test every adapter whose engine is installed; no TARGET."
)
@click.option(
    "--contract",
    type=click.Choice(tuple(CONTRACTS)),
    metavar="CONTRACT",
    help=f"How specref calls it: {', '.join(CONTRACTS)} (default: verify, or the adapter's).",
)
@rule_option
@declare_option
@shape_options
@click.option(
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="quick",
    show_default=True,
    help="TV to detect: 0.05, 0.02 or 0.01; smoke samples nothing.",
)
@click.option("--detect-tv", type=float, help="Detect this TV (overrides --profile).")
@click.option(
    "--time-limit",
    cls=Option,
    former=("--seconds",),
    type=float,
    metavar="SECONDS",
    help="End the run after so long; the report says what was not tried.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="ID",
    shell_complete=checks,
    help="Run this check; if no check has the id ID, those whose ids start with it.",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="ID",
    shell_complete=checks,
    help="Skip checks whose ids start with ID.",
)
@click.option("-x", "--exitfirst", is_flag=True, help="Stop after the first failure.")
@click.option(
    "--keep-going",
    is_flag=True,
    help="Run every check, also after a failure that settles the verdict.",
)
@click.option(
    "--alpha", default=ALPHA, show_default=True, help="False-positive rate over all checks."
)
@click.option(
    "--trials", type=int, help="Samples of each statistical check (overrides --detect-tv)."
)
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 2 if something optional could not be tried.",
)
@verbosity
@json_option
@html_option
@click.option("--junit", metavar="FILE", help="Write JUnit XML.")
@click.option("--save", metavar="FOLDER", help="Write failing cases for `specref replay`.")
@click.option("--expected", metavar="FILE.toml", help="Expected failures, with reasons.")
@click.option(
    "--texts",
    metavar="FILE",
    callback=writable,
    help="Store the engine's outputs in FILE; a second run resumes from it.",
)
@timeout_option
@click.option(
    "--isolate",
    is_flag=True,
    help="Run the engine in a subprocess, so that its crash does not end the run.",
)
@workers_option()
@cluster_option
def check_command(
    target: str | None,
    installed: bool,
    save: str | None,
    junit: str | None,
    html_file: str | None,
    json_file: str | None,
    keep_going: bool,
    **options: Any,
) -> NoReturn:
    """Test whether YOUR sampler, decode loop or engine is lossless, and which bug it has.

    TARGET is FILE.py:FUNCTION, MODULE:FUNCTION, a registered name (specref list names) or a
    program in any language, 'process:COMMAND' (specref init --language prints one). The function
    takes target_probs [B, K+1, V], draft_probs [B, K, V], draft_tokens [B, K] and rng, and
    returns tokens [B, K+1] padded with -1, and counts [B]. Names decide what is passed:
    target_logits is given logits; annotated torch.Tensor, tensors.

    Other forms are other contracts: ragged (all requests in one flat array, as engines have
    them), tree, step, generate, text (an Engine, which is asked for whole texts) and more.
    `specref list contracts --contract ragged` shows what a function takes and returns there.

    A TARGET that is an address, http://HOST:PORT/v1, is a running OpenAI-compatible server, with
    options of its own: specref check http://127.0.0.1:8000/v1 --help.

    --installed judges every registered engine that is installed, one after the other in its
    quick form and in a process of its own; a crash is a row. Exit code 1 if one of them fails
    where that is not expected; 2 if an installed one has no verdict, or none is installed.

    A sampler in NumPy takes 2 to 60 seconds, in torch up to 220, those that fail early the least;
    whole texts take minutes, and how many is said before. --time-limit 20 ends after 20 s.

    pyproject.toml may hold defaults of all options, by their long names: [tool.specref],
    target = "samplers.py:verify", rule = "standard", declare = ["ragged=false"].

    Exit codes: 0 lossless at the declared power, 1 lossy or a broken contract (or accepted
    lengths that are not those of --rule), 2 misuse, inconclusive, not answered in time, not
    exercised or not run; 130 after Ctrl-C or SIGTERM. The JSON file is rewritten every second.

    \b
    Examples:
      specref check examples.correct:verify
      specref check samplers:verify --rule standard --detect-tv 0.02
      specref check samplers:step --contract step --save failures
      specref check samplers:verify_tree --contract tree --rule topdown
      specref check samplers:verify --shape V=151936,K=5,B=32
      specref check transformers --contract generate --json report.json
      specref check samplers:verify --workers 4
      specref check samplers:verify --time-limit 20
      specref check engines.py:mine --contract text --texts texts.jsonl
      specref check 'process:./my_sampler --flag'
      specref check --installed --json engines.json
    """
    from specref.cli.judging import Files, judge_installed, judge_target

    if installed:
        if target not in (None, "engines"):
            raise ValueError(f"target = {target!r}: expected none with --installed")
        judge_installed(options["contract"], json_file)
    if target is None:
        raise ValueError("expected TARGET, such as samplers.py:verify, or --installed")
    judge_target(
        target,
        files=Files(save, junit, html_file, json_file),
        blocking=not keep_going,
        **options,
    )
