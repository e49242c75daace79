"""The pictures of docs/pictures/, each for light and for dark pages.

Run from the root of a checkout:

    python -m proofs_tests.pages.pictures
"""

from proofs_tests.pages.pictures import FOLDER, files

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
