"""``python -m specref.contrib.engines.offline ARGUMENTS``: the command line, without a network.

All connections of Python's sockets but those to this machine are refused, in its worker processes,
too, and the file that ``SPECREF_REFUSED`` names gets a line for each. What native code and other
programs connect to is not seen.
"""

import ipaddress
import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import Any

REFUSED = "SPECREF_REFUSED"
"""The environment variable: a file for the hosts."""
# Of these events the host is the first argument; of the others it is the start of an address.
NAMED = ("socket.getaddrinfo", "socket.gethostbyname")
CONNECTED = ("socket.connect", "socket.sendto", "socket.sendmsg")


class NoNetworkError(ConnectionError):
    """A connection to another machine was refused by specref."""


def refuse_network() -> None:
    """Refuse connections from now on."""
    notes = Path(os.environ.get(REFUSED) or os.devnull)
    sys.addaudithook(partial(_refused, notes, socket.gethostname()))


def _refused(notes: Path, own: str, event: str, arguments: tuple[Any, ...]) -> None:
    if event not in NAMED and event not in CONNECTED:
        return
    host = arguments[0] if event in NAMED else arguments[1]
    if isinstance(host, tuple):
        host = host[0] if host else None
    elif event in CONNECTED:
        return  # a path, or no address at all: of this machine
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not here(host, own):
        with notes.open("a", encoding="utf-8") as file:
            file.write(f"{host}\n")
        raise NoNetworkError(f"no network while this is judged: {host} was asked for")


def here(host: object, own: str = "") -> bool:
    """Whether a host is this machine."""
    if host in (None, "", "localhost", own) or not isinstance(host, str):
        return True
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return found.is_loopback or found.is_unspecified


if __name__ in ("__main__", "__mp_main__"):  # which it is called in workers
    refuse_network()

if __name__ == "__main__":
    from specref.cli import main

    main(prog_name="specref")
