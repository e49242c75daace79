"""The pictures of docs/pictures/, each for light and for dark pages.

Run from the root of a checkout, as `make docs` does. That of README is committed, and no other:

    python -m proofs_tests.pages.pictures
"""

from proofs_tests.pages.pictures import write

if __name__ == "__main__":
    write()
