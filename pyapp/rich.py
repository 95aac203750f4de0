"""How a value is shown: as a picture, a table, safe HTML or text, described as plain data for whoever draws it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyapp.parity import CaseParity, Parity
from pyapp.race import Lane
from pyapp.report import Report
from pyapp.sections import race_entry
from pyapp.tables import report_markdown

PICTURES = ((84, 84), (210, 160))
"""Shapes [rows, columns] that are shown as pictures: what the agent sees, and the screen of the console."""

LONGEST = 2_000
"""Characters of a text that are shown at once."""

KEPT = 200_000
"""Characters of a text that can be asked for."""


def shown(value: object) -> dict[str, Any] | None:
    """Describe how a value is shown.

    Parameters
    ----------
    value : object
        Any.

    Returns
    -------
    dict or None
        None for None. Else its `kind` is ``picture`` (`width`, `height`, `channels`, `data` in base64), ``table`` (`caption`,
        `columns`, `rows` of texts, and for a race `lanes` as in a report), ``html`` (`html`, not safe yet), or ``text``
        (`text`, of `length` characters); what cannot be shown says why in a text.
    """
    if value is None:
        return None
    try:
        return _picture(value) or _result(value) or _html(value) or _text(repr(value))
    except Exception as error:
        return _text(f"<{type(value).__name__}, whose repr raises {type(error).__name__}: {error}>")


def _picture(value: object) -> dict[str, Any] | None:
    if not isinstance(value, np.ndarray) or value.shape[:2] not in PICTURES:
        return None
    if not (value.ndim == 2 or (value.ndim == 3 and value.shape[2] == 3)) or value.dtype.kind not in "uifb":
        return None
    pixels = value
    if value.dtype != np.uint8:
        finite = np.nan_to_num(value.astype(np.float64))
        low, high = float(finite.min()), float(finite.max())
        # Saliency and the like have ranges of their own.
        pixels = ((finite - low) / (high - low or 1.0) * 255).astype(np.uint8)
    height, width = value.shape[:2]
    data = base64.b64encode(np.ascontiguousarray(pixels).tobytes()).decode()
    label = f"{value.dtype} {list(value.shape)}"
    return {
        "kind": "picture",
        "width": width,
        "height": height,
        "channels": 3 if value.ndim == 3 else 1,
        "data": data,
        "label": label,
    }


def _result(value: object) -> dict[str, Any] | None:
    if isinstance(value, CaseParity):
        columns = ["output", "agree", "max |d|", "max relative", "max ULP", "passed"]
        rows = [
            [
                one.output,
                f"{one.agree} of {value.cases}",
                *(f"{one.most(number):.1e}" for number in ("max_abs", "max_rel", "max_ulp")),
                "no" if one.problems else "yes",
            ]
            for one in value.outputs
        ]
        return _table(f"{value.engine} against the reference", columns, rows)
    if isinstance(value, Parity):
        rows = [[value.suite, f"{value.agree} of {value.cases}", f"{value.max_abs_diff:.1e}", "yes" if value.passed else "no"]]
        return _table(f"{value.engine} against Python", ["suite", "agree", "max |dQ|", "passed"], rows)
    if isinstance(value, Report):
        return _text(report_markdown(value))
    several = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
    lanes = [lane for lane in several if isinstance(lane, Lane)]
    if lanes and len(lanes) == len(several):
        entries = [race_entry(lane, len(lane.warmup_ms), hidden=False) for lane in lanes]
        columns = ["engine", "P50 ms", "P95 ms", "n"]
        rows = [
            [entry.engine, *(f"{ms:.3f}" if ms is not None else "-" for ms in (entry.p50_ms, entry.p95_ms)), str(entry.runs)]
            for entry in entries
        ]
        fields = ("engine", "samples_ms", "p50_ms", "p95_ms", "blocks")
        drawn = [{name: getattr(entry, name) for name in fields} for entry in entries if entry.runs]
        return _table("Time of one run", columns, rows) | {"lanes": drawn}
    return None


def _table(caption: str, columns: list[str], rows: list[list[str]]) -> dict[str, Any]:
    return {"kind": "table", "caption": caption, "columns": columns, "rows": rows}


def _html(value: object) -> dict[str, Any] | None:
    make = getattr(value, "_repr_html_", None)
    if make is None or isinstance(value, type):
        return None
    html = make()
    return {"kind": "html", "html": html[:KEPT]} if isinstance(html, str) else None


def _text(text: str) -> dict[str, Any]:
    return {"kind": "text", "text": text[:KEPT], "length": len(text), "shown": LONGEST}
