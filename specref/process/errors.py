"""Errors of programs: they cannot be started, end early, or answer with an error."""


class CannotStartError(OSError):
    """The program was not found, or did not answer `start` as it should."""


class EndedError(Exception):
    """The program crashed before it answered. It is restarted for the next request."""


class SamplerError(Exception):
    """The program answered ``{"error": …}``; the message is that of the program."""
