"""What a program can do instead of answering."""


class CannotStartError(OSError):
    """There is nothing to judge: not found, or it did not answer `start` as it should."""


class EndedError(Exception):
    """The program crashed before it had answered. It is started anew for the next request."""


class SamplerError(Exception):
    """The program answered ``{"error": …}``; the message is the program's."""
