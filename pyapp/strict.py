"""Plain data to dataclasses, strictly: no coercion, no unknown fields, every fault with its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cattrs import BaseConverter, Converter

Hook = Callable[[Any, Any], Any]


@cache
def _strict_converter() -> Converter:
    # Importing cattrs costs boot time, and nothing is read before somebody asks.
    from cattrs import Converter
    from cattrs.cols import is_mapping, is_sequence, list_structure_factory, mapping_structure_factory

    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in (int, str, bool, float):
        converter.register_structure_hook(kind, _exactly(kind))
    # By default any iterable would do for a list, a dict's keys and a string's letters among them.
    converter.register_structure_hook_factory(is_sequence, partial(_checked, list, list_structure_factory))
    converter.register_structure_hook_factory(is_mapping, partial(_checked, dict, mapping_structure_factory))
    return converter


def _checked(kind: type, factory: Callable[[type, BaseConverter], Hook], wanted: type, converter: BaseConverter) -> Hook:
    inner = factory(wanted, converter)

    def hook(value: object, target: type) -> object:
        if not isinstance(value, kind):
            raise TypeError(f"expected {kind.__name__}, got {value!r:.60}")
        return inner(value, target)

    return hook


def _exactly(kind: type) -> Hook:
    # JSON has one type of number, so 4 is a fine float; but True is no number and "4" is none either.
    accepted = (int, float) if kind is float else (kind,)

    def hook(value: object, _: object) -> object:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"expected {kind.__name__}, got {value!r:.60}")
        return kind(value)

    return hook


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
    from cattrs import transform_error

    try:
        return _strict_converter().structure(data, kind)
    except Exception as problem:
        raise error(transform_error(problem, format_exception=_describe)) from problem


def _describe(problem: BaseException, kind: type | None) -> str:
    from cattrs.v import format_exception

    # Our own hooks and the dataclasses' own checks say what is wrong; cattrs would say "invalid value".
    if type(problem) is ValueError or (isinstance(problem, TypeError) and str(problem).startswith("expected ")):
        return str(problem)
    return format_exception(problem, kind)
