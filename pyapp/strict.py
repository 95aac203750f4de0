"""Plain data to dataclasses, strictly: no coercion, no unknown fields, every fault with its place."""

from __future__ import annotations

from collections.abc import Callable

from cattrs import Converter, transform_error


def _strict_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (int, str, bool, float):
        converter.register_structure_hook(kind, _exactly(kind))
    return converter


def _exactly(kind: type) -> Callable[[object, object], object]:
    # JSON has one type of number, so 4 is a fine float; but True is no number and "4" is none either.
    accepted = (int, float) if kind is float else (kind,)

    def hook(value: object, _: object) -> object:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"expected {kind.__name__}, got {value!r:.60}")
        return kind(value)

    return hook


_CONVERTER = _strict_converter()


def structure[T](data: object, kind: type[T], error: Callable[[list[str]], Exception]) -> T:
    """Turn parsed JSON into a dataclass.

    Parameters
    ----------
    data : object
        What `json.loads` returned.
    kind : type
        A dataclass of dataclasses, lists, dicts and plain types.
    error : callable
        Makes the exception to raise from a list of faults, each ending in its place, as in ``@ $.race[0].p50_ms``.
    """
    try:
        return _CONVERTER.structure(data, kind)
    except Exception as problem:
        raise error(transform_error(problem, format_exception=_describe)) from problem


def _describe(problem: BaseException, kind: type | None) -> str:
    from cattrs.v import format_exception

    if isinstance(problem, TypeError) and str(problem).startswith("expected "):
        return str(problem)
    return format_exception(problem, kind)
