from specref.adapters.known import Deviation as Deviation
from specref.adapters.needs import NotInstalledError as NotInstalledError
from specref.adapters.registry import IMPLEMENTATIONS as IMPLEMENTATIONS
from specref.adapters.registry import Implementation as Implementation
