"""The JSON schemas that a wheel ships, written from the dataclasses of the package."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Schemas(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `specref/report/schemas/*.json` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them into build/schemas, which is put into the wheel; none where it is editable.

        Raises
        ------
        subprocess.CalledProcessError
            They cannot be made.
        """
        if version == "editable":
            return
        folder = Path(self.root, "build", "schemas")
        module = [sys.executable, "-m", "specref.report.schema", str(folder)]
        subprocess.run(module, cwd=self.root, check=True)
        build_data["force_include"][str(folder)] = "specref/report/schemas"
