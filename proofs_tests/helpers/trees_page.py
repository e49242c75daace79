"""The tree verifier that docs/trees-and-loops.md shows."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "trees-and-loops.md"


CODE = next(
    code
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    if "def verify_tree" in code
)
