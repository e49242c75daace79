"""``python -m specref``: the command line."""

from specref.cli import main

if __name__ == "__main__":
    main(prog_name="specref")
