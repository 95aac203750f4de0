"""A report as text: Markdown tables that also read well in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from pyapp.breakout.actions import ACTIONS
from pyapp.crossover import CROSSES, NOT_WITHIN
from pyapp.markdown import markdown_line, markdown_table, markdown_text
from pyapp.model_tables import faults, model_facts, placed, same_outputs
from pyapp.report import (
    QUESTIONS,
    Adapter,
    Candidate,
    CrossoverEntry,
    DepartureEntry,
    EngineEntry,
    LoopEntry,
    ParityEntry,
    RaceEntry,
    Report,
    StagesEntry,
    SweepEntry,
    TournamentEntry,
    Tune,
)
from pyapp.summary import summarize
from pyapp.verdict import CRITERIA, verdict

CHECK_TOPICS = ("answers", "speed", "ratio")


def report_markdown(report: Report) -> str:
    """Write a whole report as Markdown: what ran, same answers, faster, where the GPU overtakes, and every warning."""
    parts = [
        *(model_facts(report.model) if report.model else []),
        "## What ran\n",
        markdown_table(
            ["engine", "provider", "build", "runner", "threads", "nodes", "adapter", "created", "first run"],
            [_engine_row(entry) for entry in report.engines],
        ),
    ]
    if report.parity or not any(getattr(report, name) for name in QUESTIONS):
        parts += _checked(report)
    if report.placement:
        parts += placed(report)
    if report.faults:
        parts += faults(report)
    if report.stages:
        parts += _explained(report)
    if report.sweep:
        parts += _swept(report)
    if report.tune:
        parts += _tuned(report, report.tune)
    if report.loop:
        parts += [
            "\n## The agent's loop\n",
            markdown_table(
                ["engine", "stage", "P50 ms", "P95 ms", "n", "frames", "missed", "late decisions"],
                [_loop_row(entry) for entry in report.loop],
            ),
        ]
    if report.tournament:
        parts += _played(report)
    if report.parity or report.tournament:
        parts += _verdict(report)
    warnings = report_warnings(report)
    if warnings:
        parts += ["\n## Mind\n", *(f"- {markdown_line(warning)}" for warning in warnings)]
    return "\n".join(parts) + "\n"


def _checked(report: Report) -> list[str]:
    return [
        *(same_outputs(report) if report.agreement else _same_answers(report)),
        "\n## Faster?\n",
        markdown_table(
            ["engine", "P50 ms", "P95 ms", "mean", "min", "max", "n", "clock step"],
            [_race_row(entry) for entry in report.race],
        ),
        "",
        *(markdown_line(sentence.text) for sentence in summarize(report) if sentence.topic in CHECK_TOPICS),
    ]


def _same_answers(report: Report) -> list[str]:
    return [
        "\n## Same answers as Python?\n",
        markdown_table(
            ["suite", "engine", "agree", "max dQ", "mean dQ", "min margin", "could flip", "passed"],
            [_parity_row(entry) for entry in report.parity],
        ),
    ]


def _told(report: Report, *topics: str) -> list[str]:
    return [markdown_line(sentence.text) for sentence in summarize(report) if sentence.topic in topics]


def _explained(report: Report) -> list[str]:
    names = list(dict.fromkeys(stage.stage for entry in report.stages for stage in entry.stages))
    return [
        "\n## Why does it take so long?\n",
        *_told(report, "stages"),
        "",
        markdown_table(
            ["engine", *(f"{name} ms" for name in names), "sum", "whole run", "floor"],
            [_stages_row(entry, names) for entry in report.stages],
        ),
    ]


def _tuned(report: Report, tune: Tune) -> list[str]:
    return [
        "\n## The fastest right way\n",
        *_told(report, "tune"),
        "",
        markdown_table(
            ["candidate", "P50 ms", "P95 ms", "n", "agree", "max dQ", "status", "why"],
            [_candidate_row(entry) for entry in tune.candidates],
        ),
    ]


def _played(report: Report) -> list[str]:
    columns = ["engine", "games", "mean", "95 % interval", "median", "min", "max", "decisions a game", "truncated"]
    columns += ["decisions/s", "games/min", "compared", "departed", "unexplained"]
    departed = [
        _departure_row(entry.engine, game.seed, game.departure)
        for entry in report.tournament
        for game in entry.played
        if game.departure
    ]
    parts = ["\n## Many games\n", *_told(report, "tournament"), ""]
    parts.append(markdown_table(columns, [_tournament_row(entry) for entry in report.tournament]))
    if departed:
        columns = ["engine", "seed", "decision", "chosen", "Python's", "margin", "max dQ", "explained"]
        parts += ["\nWhere games took another course:\n", markdown_table(columns, departed)]
    return parts


def _verdict(report: Report) -> list[str]:
    found = verdict(report)
    status = {(line.engine, line.criterion): line.status for line in found.lines}
    criteria = [name for name in CRITERIA if any(name == criterion for _, criterion in status)] or CRITERIA
    rows = [[entry.name, *(status[entry.name, name] for name in criteria)] for entry in report.engines]
    return [
        "\n## Which should I ship?\n",
        markdown_line(found.sentence),
        "",
        markdown_table(["engine", *criteria], rows),
        "",
        *(f"- {markdown_line(f'{line.engine}, {line.criterion}: {line.text}')}" for line in found.lines),
        *(f"- Next: {markdown_text(step)}" for step in found.next_steps),
    ]


def _swept(report: Report) -> list[str]:
    return [
        "\n## From which batch size on?\n",
        *_told(report, "sweep", "precision"),
        "",
        markdown_table(
            ["width", "GPU", "CPU", "overtakes at batch", "from", "to", "compared"],
            [_crossover_row(entry) for entry in report.crossover],
        ),
        "",
        markdown_table(
            ["width", "batch", "engine", "P50 ms", "P95 ms", "P50 a state", "n", "agree", "max dQ", "not measured because"],
            [_sweep_row(entry) for entry in report.sweep],
        ),
    ]


def report_warnings(report: Report) -> list[str]:
    """Collect the warnings of all sections, each with what it is about."""
    named = [
        *(("environment", warning) for warning in report.environment.warnings),
        *((entry.name, warning) for entry in report.engines for warning in entry.warnings),
        *(
            (entry.name, f"not run as {reason}")
            for entry in report.engines
            if entry.actual
            for reason in entry.actual.fallbacks
        ),
        *((f"{entry.suite} on {entry.engine}", warning) for entry in report.parity for warning in entry.warnings),
        *((f"nodes of {entry.engine}", warning) for entry in report.placement for warning in entry.warnings),
        *((f"race of {entry.engine}", warning) for entry in report.race for warning in entry.warnings),
        *((f"stages of {entry.engine}", warning) for entry in report.stages for warning in entry.warnings),
        *((f"games of {entry.engine}", warning) for entry in report.tournament for warning in entry.warnings),
        *dict.fromkeys((f"sweep of {entry.engine}", warning) for entry in report.sweep for warning in entry.warnings),
    ]
    return [f"{name}: {warning}" for name, warning in named]


def _engine_row(entry: EngineEntry) -> list[str]:
    if entry.actual is None:
        failure = entry.error.message if entry.error else "not opened"
        return [entry.name, entry.requested.provider, failure, "", "", "", "", "", ""]
    actual = entry.actual
    return [
        entry.name,
        _change(entry.requested.provider, actual.provider),
        _change(entry.requested.build, actual.build),
        _change(entry.requested.runner, actual.runner),
        _change(str(entry.requested.threads), str(actual.threads)),
        ", ".join(f"{provider} {count}" for provider, count in actual.nodes.items()) or "not known",
        _adapter(actual.adapter),
        _milliseconds(entry.create_ms),
        _milliseconds(entry.first_run_ms),
    ]


def _change(requested: str, actual: str) -> str:
    # A runner adds how it runs: "fast: capture + nudge".
    same = requested in (actual, "auto") or actual.startswith(f"{requested}: ")
    return actual if same else f"{requested} -> {actual}"


def _adapter(adapter: Adapter | None) -> str:
    if adapter is None:
        return "none"
    names = " ".join(filter(None, (adapter.vendor, adapter.architecture, adapter.description)))
    return f"{names} (software)" if adapter.software else names


def _parity_row(entry: ParityEntry) -> list[str]:
    return [
        entry.suite,
        entry.engine,
        f"{entry.agree} / {entry.cases}",
        _scientific(entry.max_abs_diff),
        _scientific(entry.mean_abs_diff),
        _scientific(entry.min_margin),
        str(len(entry.could_flip)),
        "yes" if entry.passed else "NO",
    ]


def _race_row(entry: RaceEntry) -> list[str]:
    times = (entry.p50_ms, entry.p95_ms, entry.mean_ms, entry.min_ms, entry.max_ms)
    return [entry.engine, *map(_milliseconds, times), str(entry.runs), f"{entry.clock_step_ms * 1000:.0f} us"]


def _stages_row(entry: StagesEntry, names: Sequence[str]) -> list[str]:
    ms = {stage.stage: stage.p50_ms for stage in entry.stages}
    times = [*(ms.get(name) for name in names), entry.sum_ms, entry.total_ms, entry.floor_ms]
    return [entry.engine, *map(_milliseconds, times)]


def _candidate_row(entry: Candidate) -> list[str]:
    agree = f"{entry.agree} / {entry.cases}" if entry.cases else "-"
    times = map(_milliseconds, (entry.p50_ms, entry.p95_ms))
    return [entry.engine, *times, str(entry.runs), agree, _scientific(entry.max_abs_diff), entry.status, entry.reason or ""]


def _crossover_row(entry: CrossoverEntry) -> list[str]:
    answer = {CROSSES: f"{entry.batch or 0:.1f}", NOT_WITHIN: f"not within {entry.last}"}.get(entry.answer, entry.answer)
    bounds = ["-" if bound is None else f"{bound:.1f}" for bound in (entry.low, entry.high)]
    return [f"x{entry.width}", entry.numerator, entry.denominator, answer, *bounds, str(entry.points)]


def _sweep_row(entry: SweepEntry) -> list[str]:
    times = map(_milliseconds, (entry.p50_ms, entry.p95_ms, entry.per_state_ms))
    agree = f"{entry.agree} / {entry.cases}" if entry.cases else "-"
    counts = [str(entry.runs), agree, _scientific(entry.max_abs_diff), entry.reason or ""]
    return [f"x{entry.width}", str(entry.batch), entry.engine, *times, *counts]


def _tournament_row(entry: TournamentEntry) -> list[str]:
    interval = "-" if entry.low is None or entry.high is None else f"{entry.low:.1f} to {entry.high:.1f}"
    scores = [_tenths(entry.mean), interval, *map(_tenths, (entry.median, entry.min, entry.max, entry.mean_decisions))]
    speeds = map(_tenths, (entry.decisions_per_s, entry.games_per_min))
    counts = map(str, (entry.compared, entry.departures, entry.unexplained))
    return [entry.engine, str(entry.games), *scores, str(entry.truncated), *speeds, *counts]


def _departure_row(engine: str, seed: int, entry: DepartureEntry) -> list[str]:
    chosen, expected = ACTIONS[entry.action], ACTIONS[entry.expected]
    sizes = map(_scientific, (entry.margin, entry.error))
    return [engine, str(seed), str(entry.decision), chosen, expected, *sizes, "yes" if entry.explained else "NO"]


def _tenths(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _loop_row(entry: LoopEntry) -> list[str]:
    counts = (entry.n, entry.frames, entry.missed_frames, entry.late_decisions)
    return [entry.engine, entry.stage, _milliseconds(entry.p50_ms), _milliseconds(entry.p95_ms), *map(str, counts)]


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _scientific(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
