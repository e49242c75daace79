"""Downloads of packages, on the command line: ``--from PATH``."""

import click

downloads_option = click.option(
    "--from",
    "downloads",
    multiple=True,
    metavar="PATH",
    type=click.Path(),
    help="A downloaded wheel, sdist or npm tarball, or a folder of them.",
)
