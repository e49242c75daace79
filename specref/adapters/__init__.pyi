from specref.adapters.implementation import Deviation as Deviation
from specref.adapters.implementation import Implementation as Implementation
from specref.adapters.needs import NotInstalledError as NotInstalledError
from specref.adapters.registry import IMPLEMENTATIONS as IMPLEMENTATIONS
