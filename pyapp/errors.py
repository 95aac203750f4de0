"""Errors that code can test and a person can act on."""

from __future__ import annotations


class AppError(Exception):
    """Something could not be done.

    Attributes
    ----------
    kind : str
        A stable name that code can test: ``EngineTimeout``, ``DownloadFailed``, ``BadRom`` …
    message : str
        What happened, with the value that caused it.
    remedy : str
        What the reader can do about it; empty where nothing is known.
    """

    def __init__(self, kind: str, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}. {remedy}".rstrip(". ") + ".")
        self.kind = kind
        self.message = message
        self.remedy = remedy
