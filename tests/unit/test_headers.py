from __future__ import annotations

from pathlib import Path

import pytest

from pyapp.headers import HeadersError, headers_for, parse

SITE_HEADERS = Path(__file__).parents[2] / "web" / "_headers"


def test_rules_are_read_in_order_with_comments_and_blank_lines() -> None:
    rules = parse("# a comment\n\n/*\n  X-One: 1\n  X-Two: a: b\n\n/exact\n\tX-Three: 3\n")
    assert [rule.pattern for rule in rules] == ["/*", "/exact"]
    assert rules[0].headers == (("X-One", "1"), ("X-Two", "a: b"))


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/*", "/", True),
        ("/*", "/a/b", True),
        ("/a", "/a", True),
        ("/a", "/a/", False),
        ("/runtime/*", "/runtime/x/y.wasm", True),
        ("/runtime/*", "/runtime", False),
        ("/*.wasm", "/deep/x.wasm", True),
        ("/*.wasm", "/x.wasm.gz", False),
        ("/ab*ba", "/aba", False),
        ("/a.b", "/axb", False),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, path: str, matches: bool) -> None:
    (rule,) = parse(f"{pattern}\n X: y\n")
    assert rule.matches(path) is matches


def test_one_header_from_two_rules_is_joined() -> None:
    rules = parse("/*\n Cache-Control: no-cache\n/a\n cache-control: private\n")
    assert headers_for(rules, "/a") == {"Cache-Control": "no-cache, private"}


def test_a_detached_header_is_replaced() -> None:
    rules = parse("/*\n Cache-Control: no-cache\n X: y\n/a\n ! cache-control\n Cache-Control: private\n")
    assert headers_for(rules, "/a") == {"X": "y", "Cache-Control": "private"}
    assert headers_for(rules, "/b") == {"Cache-Control": "no-cache", "X": "y"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("X-One: 1\n", 1, "before any path"),
        ("/*\n X-One 1\n", 2, "no ':'"),
        ("/*\n\n# comment\n X-One:\n", 4, "no value"),
        ("/*\n X One: 1\n", 2, "not a header's name"),
        ("/*\n ! \n", 2, "not a header's name"),
        ("/*/*\n", 1, "more than one"),
        ("/a/:name\n", 1, "placeholders"),
        ("/*\n X: " + "y" * 2000 + "\n", 2, "2003 characters"),
        ("/a\n" * 101, 101, "more than 100"),
    ],
)
def test_a_wrong_line_is_named(text: str, line: int, words: str) -> None:
    with pytest.raises(HeadersError, match=words) as caught:
        parse(text)
    assert caught.value.line == line
    assert f"line {line}" in str(caught.value)


def test_our_own_file_isolates_pages_and_keeps_runtimes() -> None:
    rules = parse(SITE_HEADERS.read_text(encoding="utf-8"))
    page = headers_for(rules, "/")
    assert page["Cross-Origin-Opener-Policy"] == "same-origin"
    assert page["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert page["Cache-Control"] == "no-cache"
    assert "unsafe-inline" not in page["Content-Security-Policy"]
    assert "'unsafe-eval'" not in page["Content-Security-Policy"]
    runtime = headers_for(rules, "/runtime/pyodide-0.27.7/pyodide.mjs")
    assert runtime == page | {"Cache-Control": "public, max-age=31536000, immutable"}
