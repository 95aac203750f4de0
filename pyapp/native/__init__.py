"""The package's protocols on CPython: the reference that the browser is compared with. Needs the extra ``native``."""
