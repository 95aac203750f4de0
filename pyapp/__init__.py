"""Whether an ONNX model gives the same answers on WASM and on WebGPU as in Python, which is faster, and which to ship.

The questions are pure Python and numpy (`parity`, `race`, `check`) and run on any `Engine`: a browser's workers
(`pyapp.browser`), onnxruntime on CPython (`pyapp.native`), or a test's fake.
"""

from pyapp.cases import Suite, load_suite
from pyapp.check import Check, CheckSettings
from pyapp.engine import Engine, EngineError, EngineFacts, EngineSpec
from pyapp.errors import AppError
from pyapp.parity import Parity, parity
from pyapp.race import RaceSettings, race, ratio
from pyapp.report import Report, ReportError, parse_report

__all__ = [
    "AppError",
    "Check",
    "CheckSettings",
    "Engine",
    "EngineError",
    "EngineFacts",
    "EngineSpec",
    "Parity",
    "RaceSettings",
    "Report",
    "ReportError",
    "Suite",
    "load_suite",
    "parity",
    "parse_report",
    "race",
    "ratio",
]
