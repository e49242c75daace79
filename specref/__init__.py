"""The executable specification of lossless speculative decoding.

What is public is listed in `__init__.pyi`, and imported when it is asked for: the algorithms need
NumPy alone, verdicts SciPy.
"""

from specref.lazy import public_names

__version__ = "0.1.0"
__all__, __getattr__ = public_names(__file__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
