import asyncio
import base64
import hashlib
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest
from fakes import FakeBreakout, FakeEngine, FakeHost, Recorder, linear_scores, make_suite

from pyapp import report as r
from pyapp.breakout.games import ReferenceGames, Start
from pyapp.breakout.question import Games, GamesSettings
from pyapp.breakout.scores import merged_entries
from pyapp.breakout.tournament import Tournament, TournamentSettings
from pyapp.engine import EngineError, EngineSpec
from pyapp.errors import AppError
from pyapp.export import report_csv
from pyapp.foreign import contradictions, read_foreign
from pyapp.report import merged
from pyapp.summary import summarize
from pyapp.tables import report_markdown
from pyapp.verdict import verdict

MODEL = b"a model"
SETTINGS = GamesSettings(engines=["wasm-1", "webgpu-fast"], games=4, epsilon=0, opening=2)


def tilted(observation):
    return observation[:, :, 0, 0] @ np.diag([1, 2, 3, 3.9]).astype(np.float32)


async def opened(*, max_frames):
    return await FakeBreakout.opened(max_frames)


def reference_text(model=MODEL):
    starts = tuple(Start(seed=seed, opening=2) for seed in range(4))
    tournament = Tournament(
        [FakeEngine(EngineSpec.parse("wasm-1"))], FakeBreakout.opened, TournamentSettings(starts=starts, epsilon=0)
    )
    games = tuple(one.game for one in asyncio.run(tournament.play()))
    return ReferenceGames(max_frames=100, model_sha256=hashlib.sha256(model).hexdigest(), games=games).to_json().encode()


REFERENCE = reference_text()


def question(settings=SETTINGS, scores=None, reference=REFERENCE, refused=(), listener=None):
    made = []

    async def open_engine(spec, model):
        if spec.name in refused:
            raise EngineError("WebGpuUnavailable", "no adapter", "Use another browser.")
        made.append(FakeEngine(spec, scores=(scores or {}).get(spec.name, linear_scores)))
        return made[-1]

    async def fetch(path):
        assert path == "fixtures/games.json"
        return reference

    return Games(settings, MODEL, make_suite(), fetch, open_engine, opened, FakeHost(), listener or Recorder()), made


def asked(**told):
    recorder = Recorder()
    games, made = question(listener=recorder, **told)
    report = asyncio.run(games.run())
    assert all(engine.closed == 1 for engine in made)
    assert contradictions(report) == []
    assert read_foreign(report.to_json()) == report
    return report, recorder


def entry(report, name):
    [found] = [one for one in report.tournament if one.engine == name]
    return found


def test_engines_that_play_as_python_does():
    report, recorder = asked()
    assert [one.engine for one in report.tournament] == SETTINGS.engines
    for found in report.tournament:
        assert (found.games, found.compared, found.departures, found.valid) == (4, 4, 0, True)
        assert (found.difference_low, found.difference_high) == (0, 0)
        assert found.mean == pytest.approx(np.mean([game.score for game in found.played]))
        assert found.min <= found.low <= found.mean <= found.high <= found.max
        assert found.mean_decisions == pytest.approx((7 + 8 + 9 + 10) / 4)
    said = [sentence.text for sentence in summarize(report) if sentence.topic == "tournament"]
    assert "wasm-1 plays 4 games as Python does, decision by decision." in said
    sections = [section for name, section in recorder.sections if name == "tournament"]
    assert sections
    assert recorder.heard[-1] == ("played", 8, 8)
    assert any("plays 2 games: " in stage for stage, _, _ in recorder.heard)
    markdown = report_markdown(report)
    assert "## Many games" in markdown
    assert "## Which should I ship?" in markdown
    assert "tournament.played,wasm-1,,seed 3,,score" in report_csv(report)


def test_a_departure_is_told_with_its_state_and_may_be_unexplained():
    report, _ = asked(scores={"webgpu-fast": lambda observation: linear_scores(observation)[:, ::-1] * 3})
    found = entry(report, "webgpu-fast")
    assert found.departures > 0
    departed = next(game for game in found.played if game.departure).departure
    state = np.frombuffer(zlib.decompress(base64.b64decode(departed.state)), np.uint8).reshape(4, 84, 84)
    q_values = linear_scores(state[np.newaxis].astype(np.float32))[0]
    np.testing.assert_allclose(departed.reference_q_values, q_values, rtol=1e-6)
    assert int(np.argmax(q_values)) == departed.expected
    assert departed.margin == pytest.approx(q_values[departed.expected] - q_values[departed.action], rel=1e-5)
    assert "Where games took another course" in report_markdown(report)
    planted, _ = asked(scores={"webgpu-fast": tilted})
    assert entry(planted, "webgpu-fast").unexplained == 0


def test_without_wasm_among_the_engines_wasm_is_the_referee():
    report, _ = asked(settings=replace(SETTINGS, engines=["webgpu-fast"]), scores={"webgpu-fast": tilted})
    [found] = report.tournament
    assert found.departures > 0
    assert found.unexplained == 0


def test_a_reference_of_another_model_is_no_reference():
    report, _ = asked(reference=reference_text(b"another model"))
    assert [(one.compared, one.reference_mean) for one in report.tournament] == [(0, None), (0, None)]


def test_an_engine_that_cannot_be_had_is_a_result():
    report, _ = asked(refused={"webgpu-fast"})
    lost = entry(report, "webgpu-fast")
    assert (lost.games, lost.mean, lost.error.name, lost.valid) == (0, None, "WebGpuUnavailable", False)
    assert entry(report, "wasm-1").games == 4
    assert "games of webgpu-fast: it plays no more: no adapter. Use another browser." in report_markdown(report)
    assert any("webgpu-fast stopped playing" in sentence.text for sentence in summarize(report))
    nobody, _ = asked(refused={"wasm-1", "webgpu-fast"})
    assert [one.games for one in nobody.tournament] == [0, 0]


def test_what_was_cancelled_goes_on_and_comes_to_the_same():
    whole, _ = asked()

    async def main():
        recorder = Recorder()
        games, _ = question(listener=recorder)

        def section(name, found):
            if name == "tournament" and len(recorder.sections) == 2:
                assert games.cancel()
            recorder.sections.append((name, found))

        recorder.section = section
        part = await games.run()
        assert not games.complete
        assert 0 < sum(one.games for one in part.tournament) < 8
        assert any("only 1 of 4 games" in warning for one in part.tournament for warning in one.warnings)
        assert contradictions(part) == []
        rest = await games.run()
        assert games.complete
        return rest

    def course(report):
        return [[replace(game, seconds=0) for game in one.played] for one in report.tournament]

    assert course(asyncio.run(main())) == course(whole)


def test_cancelled_before_the_first_game_is_finished():
    async def main():
        games, made = question()
        games.listener.progress = lambda stage, done, total: games.cancel() if "plays" in stage else None
        assert not games.cancel(), "nothing is played yet"
        with pytest.raises(asyncio.CancelledError):
            await games.run()
        assert all(engine.closed == 1 for engine in made)

    asyncio.run(main())


def test_pause_holds_and_resume_goes_on():
    async def main():
        games, _ = question()
        games.pause(True)
        games.listener.progress = lambda stage, done, total: games.pause(True) if "plays" in stage and done == 0 else None
        task = asyncio.ensure_future(games.run())
        for _ in range(300):
            await asyncio.sleep(0)
        assert not task.done()
        games.listener.progress = lambda stage, done, total: None
        games.pause(False)
        report = await asyncio.wait_for(task, 5)
        assert [one.games for one in report.tournament] == [4, 4]

    asyncio.run(main())


def test_parts_of_several_browsers_come_to_the_whole():
    whole, _ = asked()
    parts = [asked(settings=replace(SETTINGS, seeds=seeds))[0].tournament for seeds in ([2, 0], [1], [3])]
    found = merged_entries(parts)
    alike = {"seconds": 0}
    for one, other in zip(found, whole.tournament, strict=True):
        assert [replace(game, **alike) for game in one.played] == [replace(game, **alike) for game in other.played]
        assert (one.mean, one.low, one.high, one.compared) == (other.mean, other.low, other.high, other.compared)
    with pytest.raises(ValueError, match="seed 1 and opening 2 twice"):
        merged_entries([*parts, parts[1]])
    with pytest.raises(ValueError, match=r"0, 0\.5"):
        merged_entries([parts[0], [replace(parts[1][0], epsilon=0.5)]])


def test_it_is_a_part_of_a_report_and_of_the_verdict():
    report, _ = asked()
    check = replace(report, tournament=[])
    assert merged(check, report).tournament == report.tournament
    assert verdict(report).engine is None, "games alone do not say whether answers are right"
    data = json.loads(check.to_json())
    del data["tournament"]
    assert read_foreign(json.dumps(data)).tournament == []


REPORT, _ = asked(scores={"webgpu-fast": tilted})
GOOD, DEPARTED = REPORT.tournament
PLACE = next(place for place, game in enumerate(DEPARTED.played) if game.departure)


def departed(**changes):
    played = list(DEPARTED.played)
    played[PLACE] = replace(played[PLACE], departure=replace(played[PLACE].departure, **changes))
    return replace(DEPARTED, played=played)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (replace(GOOD, games=5), r"5 where its games say 4 @ \$.tournament\[0\].games"),
        (replace(GOOD, departures=1), r"1 where its games say 0 @ \$.tournament\[0\].departures"),
        (replace(GOOD, played=[GOOD.played[0]] * 4), r"'seed 0 with opening 2' is there 4 times"),
        (replace(GOOD, mean=None), r"no number with 4 games @ \$.tournament\[0\].mean"),
        (replace(GOOD, reference_mean=None), r"no number with 4 games @ \$.tournament\[0\].reference_mean"),
        (replace(GOOD, low=9e9), "is no interval"),
        (replace(GOOD, played=[replace(GOOD.played[0], decisions=0), *GOOD.played[1:]]), "are no game"),
        (departed(decision=99), r"decision 99 of"),
        (departed(action=4), "4 is no action, which are 0 to 3"),
        (departed(q_values=[1.0]), "1 scores for 4 actions"),
        (departed(margin=9e9), "explained with a margin of 9e\\+09"),
    ],
)
def test_a_tournament_that_contradicts_itself_is_refused(wrong, fault):
    with pytest.raises(r.ReportError, match=fault):
        read_foreign(replace(REPORT, tournament=[wrong]).to_json())


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"engines": []}, "0 engines"),
        ({"games": 0}, "games is 0"),
        ({"games": 1001}, "1001"),
        ({"epsilon": -0.5}, "epsilon is -0.5"),
        ({"opening": 51}, "opening is 51"),
        ({"lanes": 9}, "lanes is 9"),
        ({"seeds": [1, 1]}, "twice"),
        ({"seed": -1}, "seed is -1"),
        ({"games": "many"}, "games"),
        ({"rounds": 1}, "rounds"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, named):
    with pytest.raises(ValueError, match=named):
        GamesSettings.from_data(wrong)


def test_starts():
    assert GamesSettings(games=2, seed=5).starts() == (Start(seed=5), Start(seed=6))
    assert GamesSettings(games=1, epsilon=0).starts() == (Start(seed=0, opening=20),)
    assert GamesSettings(seeds=[9, 4], opening=3).starts() == (Start(seed=9, opening=3), Start(seed=4, opening=3))


def test_reference_games_that_cannot_be_read_are_an_error():
    games, made = question(reference=b"{")
    with pytest.raises(AppError, match="no JSON"):
        asyncio.run(games.run())
    assert all(engine.closed == 1 for engine in made)
