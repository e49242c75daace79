"""All samplers of the second attack, by name."""

from proofs_tests.helpers.attack.second.claims import VERIFY
from proofs_tests.helpers.attack.second.drafters import DRAFTER
from proofs_tests.helpers.attack.second.engines import TEXT
from proofs_tests.helpers.attack.second.entry import Entry
from proofs_tests.helpers.attack.second.figures import METRICS
from proofs_tests.helpers.attack.second.loops import GENERATE
from proofs_tests.helpers.attack.second.ragged import RAGGED
from proofs_tests.helpers.attack.second.steps import STEP
from proofs_tests.helpers.attack.second.trees import TREE

CONTRACTS = (GENERATE, STEP, TEXT, TREE, VERIFY, RAGGED, DRAFTER, METRICS)
SECOND: dict[str, Entry] = {name: one for samplers in CONTRACTS for name, one in samplers.items()}
