"""What stops a build, said in one line."""

from __future__ import annotations


class BuildError(Exception):
    """A build that cannot go on.

    Parameters
    ----------
    what
        What is wrong, with the value that is wrong in it.
    remedy
        What to do about it.
    """

    def __init__(self, what: str, remedy: str) -> None:
        # Messages of other programs end up in here, and a terminal shows one line per error.
        super().__init__(" ".join(f"{what} – {remedy}".split()))
        self.what = what
        self.remedy = remedy
