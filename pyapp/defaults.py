"""Which engine to use where nobody has chosen one."""

from __future__ import annotations

from pyapp.report import Report

STOCK, FAST = "webgpu-stock", "webgpu-fast"


def webgpu_engine(report: Report | None) -> str:
    """Name the WebGPU engine to use on the machine of a report.

    Parameters
    ----------
    report : Report or None
        A check made on this machine; None before the first one.

    Returns
    -------
    str
        ``webgpu-fast`` if it was opened and gave Python's answers to every suite, else ``webgpu-stock``.
    """
    if report is None or not report.suites:
        return STOCK
    sound = any(entry.name == FAST and entry.error is None for entry in report.engines)
    passed = {entry.suite for entry in report.parity if entry.engine == FAST and entry.passed}
    return FAST if sound and passed >= {entry.suite for entry in report.suites} else STOCK
