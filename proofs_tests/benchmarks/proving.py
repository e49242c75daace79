"""What `specref prove` costs for each rule: cases, random paths and seconds of CPU time.

Run from the root of a checkout:

    python -m proofs_tests.benchmarks.proving [RULE…]
"""

import sys
import time

from specref.rules import RULES
from specref.verification import prove


def main(names: list[str]) -> None:
    print(f"{'rule':<20}{'cases':>7}{'not judged':>12}{'paths':>9}{'seconds':>9}")
    for name in names or RULES:
        started = time.process_time()
        report = prove(RULES[name].step)
        seconds = time.process_time() - started
        cases = sum(row.cases for row in report.enumerated)
        print(f"{name:<20}{cases:>7}{report.too_large:>12}{report.paths:>9,}{seconds:>9.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
