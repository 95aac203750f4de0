import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyapp.tables import markdown_table, report_markdown
from tests.unit.test_report_csv import REPORT, named

HOSTILE = st.lists(st.sampled_from([*"\\|`*_[]()<>&~#-+=!: \n\r\t\x1b\u2028é1.n", "<img>", "&lt;", "](javascript:0)"])).map(
    "".join
)
TEXT = st.one_of(HOSTILE, st.text())


def cells(line):
    """Split a row as GFM does, whichever way a reader counts backslashes before a bar."""
    pairs = re.findall(r"(?:\\.|[^\\|])+", line)
    neighbours = re.split(r"(?<!\\)\|", line)[1:-1]
    assert [cell.strip() for cell in pairs] == [cell.strip() for cell in neighbours], line
    return [cell.strip() for cell in pairs]


def shown(text):
    """Take the escapes out again, as a reader of Markdown does."""
    unescaped = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
    return unescaped.replace("&lt;", "<").replace("&amp;", "&")


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=4))
def test_whatever_a_cell_says_a_row_keeps_its_cells_and_has_no_markup(rows):
    head, rule, *lines = markdown_table(["a", "b", "c"], rows).splitlines()
    assert len(lines) == len(rows)
    assert re.fullmatch(r"\| :-+ \| -+: \| -+: \|", rule), "a rule without a hyphen makes no table"
    for line, row in zip([head, *lines], [("a", "b", "c"), *rows], strict=True):
        assert "<" not in line
        assert re.search(r"(?<!\\)(?:\\\\)*[`\[\]*]", line) is None
        found = cells(line)
        assert len(found) == 3
        for cell, wanted in zip(found, row, strict=True):
            assert shown(cell).split() == re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", wanted).split()


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("<img src=x>", "&lt;img src=x>"),
        ("`rm`", "\\`rm\\`"),
        ("[x](javascript:alert(1))", "\\[x\\](javascript:alert(1))"),
        ("one\ntwo", "one two"),
        ("\x1b[2Jgone", "\\[2Jgone"),
        ("a|b\\", "a\\|b\\\\"),
        ("&lt;b>", "&amp;lt;b>"),
        ("_x_ of snake_case & co", "\\_x\\_ of snake_case & co"),
    ],
)
def test_a_name_is_text_wherever_the_report_says_it(name, written):
    text = report_markdown(named(REPORT, name))
    assert text.count(written) > 5
    assert "<img" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("start", "written"), [("# x", "\\# x"), ("- x", "\\- x"), ("1. x", "1\\. x"), ("> x", "\\> x"), ("---", "\\---")]
)
def test_a_name_at_the_start_of_a_line_begins_no_heading_or_list(start, written):
    engine = replace(REPORT.engines[0], name=start, warnings=["is slow"])
    text = report_markdown(replace(named(REPORT, start), engines=[engine, *REPORT.engines[1:]]))
    assert f"\n- {written}: is slow" in text
    assert f"\n{start}" not in text


def test_our_own_names_are_left_as_they_are():
    assert "\\" not in report_markdown(REPORT)
    assert "&" not in report_markdown(REPORT)
