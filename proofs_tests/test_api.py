"""docs/api.md: the names that are public, what they are, and their defaults."""

from pathlib import Path

from proofs_tests.pages import api


def test_a_name_that_a_page_imports_is_public(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nfrom specref.laws import completed\n```\n")
    assert list(api.imports(page)) == [("specref.laws", "completed")]
    assert api.line("MOST", 3) == "| `MOST` | `3` |"


def test_defaults_are_those_of_the_code() -> None:
    def sampler(texts: list, size: int = 3, *, strict: bool = False, seed: int | None = None):
        """Sample."""

    assert api.line("sampler", sampler) == (
        "| `sampler` | Sample. Defaults: `size=3, strict=False, seed=None`. |"
    )
