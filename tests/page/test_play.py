"""You on the left, the agent on the right: what moves, what stands, and that neither can stall the other."""

from __future__ import annotations

import json
import shutil
import time

import pytest
from selenium.webdriver import ActionChains, Keys

from pyapp.sitefolder import app_folder

from .deployed import quiet_site
from .game import Game
from .visit import wait_until


@pytest.fixture(scope="module")
def page(visit):
    # So that memory is measured at once, not at the next garbage collection.
    with visit(arguments=("--enable-blink-features=ForceEagerMeasureMemory",)) as page:
        yield page


@pytest.fixture
def game(page):
    game = Game(page)
    game.start()
    game.speed("1×")  # an earlier test's speed stays, and at full speed a game may be over before a test has looked at it
    return game


def hold(game, key, seconds):
    """Hold a key down, as long as a person would."""
    ActionChains(game.driver).key_down(key).pause(seconds).key_up(key).perform()


def test_nothing_is_loaded_before_start(page):
    assert Game(page).state == "idle"
    asked = page.driver.execute_script("return performance.getEntriesByType('resource').map(({ name }) => name)")
    assert not [name for name in asked if "/ale/" in name or "visitor-worker" in name]
    targets = page.driver.execute_cdp_cmd("Target.getTargets", {})["targetInfos"]
    assert not [target["url"] for target in targets if "visitor-worker" in target["url"] or "engine-worker" in target["url"]]


def test_both_boards_move(game):
    assert game.changes("agent")
    before = game.console()["frame"]
    time.sleep(1)
    frames = game.console()["frame"] - before
    assert 40 <= frames <= 80, f"{frames} frames in a second"
    hold(game, Keys.SPACE, 0.3)
    assert game.changes("you"), "the ball does not fly after it was served"


@pytest.mark.parametrize(("left", "right"), [(Keys.ARROW_LEFT, Keys.ARROW_RIGHT), ("a", "d")])
def test_keys_move_the_paddle(game, left, right):
    hold(game, left, 0.7)
    at_left = game.paddle
    hold(game, right, 1.2)
    assert game.paddle > at_left + 40
    hold(game, left, 1.2)
    assert game.paddle < at_left + 20
    stands = game.paddle
    time.sleep(0.3)
    assert game.paddle == stands, "the paddle moves although no key is down"


def test_a_finger_on_the_board_moves_the_paddle_to_it(game):
    canvas = game.driver.find_element("css selector", ".board.you canvas")
    game.driver.execute_script("arguments[0].scrollIntoView({ block: 'center' })", canvas)
    script = "const { x, y, width, height } = arguments[0].getBoundingClientRect(); return [x, y, width, height]"
    x, y, width, height = game.driver.execute_script(script, canvas)
    for share in (0.8, 0.3):
        touch = [{"x": x + share * width, "y": y + height / 2}]
        game.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": touch})
        wait_until(lambda wanted=share * 160: abs(game.paddle - wanted) < 4, f"the paddle is at {share:.0%} of the width", 3)
        time.sleep(0.2)
        assert len({game.paddle for _ in range(10)}) == 1, "the paddle swings about the finger"
        game.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_gamepad_moves_the_paddle(page, game):
    pads = "navigator.getGamepads = () => [null, {{ axes: [{axis}, 0], buttons: [] }}]"
    page.driver.execute_script(pads.format(axis=-0.9))
    wait_until(lambda: game.paddle < 25, "the stick moves the paddle to the left", 3)
    page.driver.execute_script(pads.format(axis=0.9))
    wait_until(lambda: game.paddle > 140, "the stick moves the paddle to the right", 3)
    page.driver.execute_script("delete navigator.getGamepads")


def test_p_and_r_work_and_leave_letters_to_texts(game):
    board = game.driver.find_element("css selector", ".board.you canvas")
    board.send_keys("p")
    wait_until(lambda: game.state == "paused", "P pauses", 3)
    board.send_keys("p")
    wait_until(lambda: game.state == "playing", "P resumes", 3)
    wait_until(lambda: game.console()["frame"] > 60, "the visitor has played for a second", 5)
    board.send_keys("r")
    wait_until(lambda: game.console()["frame"] < 60, "R restarts", 3)
    paddle = game.paddle
    for text in ("#play input[inputmode=numeric]", "#console textarea"):
        field = game.driver.find_element("css selector", text)
        field.clear()
        field.send_keys("a drape", Keys.ARROW_LEFT)
        assert field.get_attribute("value") == "a drape"
        field.clear()
    assert (game.state, game.paddle) == ("playing", paddle)
    assert game.console()["frame"] > 5, "R restarted from a text"


def test_pause_stops_both_a_step_is_one_decision_and_resume_goes_on(game):
    wait_until(lambda: game.agent_frames > 60, "the agent has played for a second", 5)
    game.pause()
    time.sleep(0.3)
    before = game.console()["frame"], game.agent_frames
    time.sleep(0.5)
    assert (game.console()["frame"], game.agent_frames) == before
    game.press("Step one decision")
    wait_until(lambda: game.agent_frames != before[1], "the agent makes a step", 3)
    time.sleep(0.3)
    assert game.agent_frames == before[1] + 4
    assert game.console()["frame"] == before[0]
    game.press("Resume")
    wait_until(lambda: game.agent_frames > before[1] + 60 and game.console()["frame"] > before[0] + 30, "both go on", 5)


def test_restart_begins_both_games_again(game):
    wait_until(lambda: game.agent_frames > 150 and game.console()["frame"] > 100, "both have played for a while", 8)
    game.press("Restart")
    wait_until(lambda: game.agent_frames < 100 and game.console()["frame"] < 100, "both begin again", 5)
    assert game.changes("agent")


def test_the_same_seed_is_the_same_game(game):
    """The agent's first observation, which the seed's idle frames decide, and the visitor's memory before the first frame."""
    game.pause()

    def begun(seed):
        game.visit.python(f"await page.agent.runner.restart({seed})")
        return game.visit.python("page.agent.runner.loop.environment.observation.tobytes()")

    assert begun(7) == begun(7)
    assert begun(7) != begun(8)


def test_speeds(game):
    def pace():
        before, start = game.agent_frames, time.monotonic()
        time.sleep(1.5)
        return (game.agent_frames - before) / (time.monotonic() - start)

    rates = {}
    for label in ("2×", "max", "1×"):
        game.speed(label)
        time.sleep(0.3)
        rates[label] = pace()
    assert 45 <= rates["1×"] <= 75, rates
    assert 90 <= rates["2×"] <= 150, rates
    assert rates["max"] > 1.5 * rates["2×"], rates
    assert game.console()["frame"] > 0


def test_another_engine_plays_on_from_the_same_state(game):
    wait_until(lambda: game.agent_frames > 100, "the agent has played for a while", 5)
    before = game.agent_frames
    game.choose("wasm-2")
    wait_until(lambda: "wasm-2 plays on" in game.status, "the other engine plays", 20)
    assert game.agent_frames >= before
    assert game.visit.text(".board.agent h3") == "Agent on wasm-2"
    wait_until(lambda: game.agent_frames > before + 60, "the game goes on", 5)
    wait_until(lambda: "wasm-1" not in game.visit.engines(), "the engine before is ended", 5)


def test_a_lost_engine_is_told_and_the_other_one_goes_on_with_the_game(game):
    wait_until(lambda: game.agent_frames > 100, "the agent has played for a while", 5)
    game.visit.python("page.agent.runner.loop.policy.engine._worker.end()")
    wait_until(lambda: game.error, "the loss is told", 5)
    assert "the engine has been closed" in game.error
    stands = game.agent_frames
    visitor = game.console()["frame"]
    time.sleep(0.5)
    assert game.agent_frames == stands, "the game went on without an engine"
    assert game.console()["frame"] > visitor, "the visitor's board stopped, too"
    game.press("Go on with wasm-2")
    wait_until(lambda: game.agent_frames > stands + 20, "the game goes on", 20)
    assert not game.error
    assert game.agent_frames < stands + 1000, "the game began anew"


@pytest.mark.parametrize("first", [False, True], ids=["in mid-game", "before its first run"])
def test_an_engine_whose_worker_dies_in_silence_is_missed(page, game, first):
    """Nobody is told when a worker is ended from outside; only the answer does not come."""
    page.driver.execute_script("""
        const { Worker } = globalThis;
        globalThis.Worker = class extends Worker {
            constructor(...given) {
                super(...given);
                globalThis.Worker = Worker;
                globalThis.endEngine = () => this.terminate();
            }
        };
    """)
    page.python("pyapp.breakout.agent.ANSWER_LIMIT_S = 1.0")
    if first:
        game.pause()
    game.choose("wasm-2")
    wait_until(lambda: page.text(".board.agent h3") == "Agent on wasm-2", "the other engine has the game", 20)
    before = game.agent_frames
    if not first:
        wait_until(lambda: game.agent_frames > before + 40, "the other engine plays", 5)
    page.driver.execute_script("endEngine()")
    if first:
        game.press("Resume")
    wait_until(lambda: game.error, "the loss is told", 6)
    assert "engine wasm-2 did not answer within 1.0 s" in game.error
    stands = game.agent_frames
    game.press("Go on with wasm-1")
    wait_until(lambda: game.agent_frames > stands, "the game goes on", 20)
    assert game.agent_frames < stands + 1000, "the game began anew"
    assert not game.error
    page.python("pyapp.breakout.agent.ANSWER_LIMIT_S = 20.0")


def test_python_that_is_busy_does_not_stop_the_visitor(game):
    before = game.console()["frame"]
    script = "globalThis.busy = pyappPage.evaluate('import time\\nstart = time.time()\\nwhile time.time() - start < 2: pass')"
    game.driver.execute_script(script)
    time.sleep(1.5)
    assert game.console()["frame"] - before > 60
    game.visit.page.run("await busy")


def test_a_visitor_who_does_nothing_does_not_stop_the_agent(game):
    before = game.agent_frames
    time.sleep(1)
    assert game.agent_frames - before > 40
    assert game.console()["ram"][57] == 5, "no ball was served, so no life can be lost"


def test_a_hidden_tab_pauses_both_and_its_time_does_not_count(game):
    hide = """
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => arguments[0] });
        document.dispatchEvent(new Event('visibilitychange'));
    """.replace("arguments[0]", "{hidden}")
    game.driver.execute_script(hide.replace("{hidden}", "true"))
    wait_until(lambda: game.state == "paused", "the games pause", 3)
    assert "hidden" in game.status
    time.sleep(0.3)
    before = game.console()["frame"], game.agent_frames
    time.sleep(0.4)
    game.driver.execute_script(hide.replace("{hidden}", "false"))
    assert (game.console()["frame"], game.agent_frames) == before
    assert game.driver.switch_to.active_element.text == "Resume"
    game.press("Resume")
    wait_until(lambda: game.agent_frames > before[1] + 20, "the game goes on", 5)
    counts = game.visit.page.run("return await pyappPage.play.counts()")
    assert max(board["gap"] for board in counts.values()) < 400, counts


def test_the_loop_is_shown_and_in_the_report(game):
    report = game.visit.page.check({"engines": ["wasm-1"], "runs": 3, "warmup": 1})
    assert game.state == "paused", "the game takes time from the engines that a check compares"
    assert "check" in game.status
    game.press("Resume")
    wait_until(lambda: game.agent_frames > 200, "the agent has played for a while", 8)
    shown = game.visit.table("The agent's loop, stage by stage")
    stages = {"hand-over", "compute", "decide", "capture", "preprocess", "draw", "decision"}
    assert {name.split()[0] for name in shown} == stages
    assert all(times["P50"].endswith("ms") for times in shown.values())
    game.press("Pause")
    wait_until(lambda: (game.visit.page.get("report") or {}).get("loop"), "the report has the loop", 5)
    loop = {entry["stage"]: entry for entry in game.visit.page.get("report")["loop"]}
    assert set(loop) == stages
    decision = loop["decision"]
    assert decision["engine"] == "wasm-1"
    assert decision["n"] > 20
    assert 0 < decision["p50_ms"] <= decision["p95_ms"]
    parts = sum(entry["p50_ms"] for stage, entry in loop.items() if stage != "decision")
    assert 0.5 < parts / decision["p50_ms"] < 1.5, loop
    assert report["loop"] is not None
    again = game.visit.page.run("return JSON.stringify(pyappPage.report)")
    assert game.visit.python(f"len(pyapp.parse_report({again!r}).loop)") == "7"


def test_a_bad_seed_is_quoted_and_the_games_go_on(game):
    before = game.console()["frame"]
    for seed in ("-1", "2147483648", "many"):
        game.type_seed(seed)
        game.press("Restart")
        wait_until(lambda: game.error, "the seed is refused", 3)
        assert seed in game.error
    assert game.console()["frame"] > before


def test_a_round_is_over_when_both_games_are(page, game):
    """The agent's place is taken by a policy from the console: an object with one method."""
    game.speed("max")
    page.python(ONLY_SERVES)
    wait_until(lambda: "agent's game is over" in game.status, "the agent's game is over", 10)
    assert "Game over" in page.text(".board.agent")
    ActionChains(game.driver).key_down(Keys.SPACE).perform()
    wait_until(lambda: game.state == "over", "the visitor's game is over", 30)
    ActionChains(game.driver).key_up(Keys.SPACE).perform()
    you, agent = (page.text(f".board.{name} .numbers").split("\n")[1::2] for name in ("you", "agent"))
    scores = int(you[0]), int(agent[0])
    assert (you[3], agent[3]) == (str(int(scores[0] > scores[1])), str(int(scores[1] > scores[0])))
    assert ("A draw" if scores[0] == scores[1] else "the round") in game.status
    game.press("Restart")
    wait_until(lambda: game.state == "playing" and game.console()["frame"] > 30, "the next round", 5)


def test_the_agent_comes_back_after_python_was_started_anew(page, game):
    page.page.run("await pyappPage.restart()")
    page.page.wait_ready()
    assert "Python is back" in game.status
    before = game.console()["frame"]
    wait_until(lambda: game.console()["frame"] > before + 30, "the visitor plays on", 5)
    game.press("Begin both anew")
    wait_until(lambda: game.state == "playing" and game.agent_frames > 30, "both play", 20)


def test_a_function_from_python_plays_and_its_error_stops_its_board_only(page, game):
    page.python(
        "async def policy(observation, ram, info):\n    return 'FIRE' if ram[101] == 0 else 'NOOP'\nawait pyapp.play(policy)"
    )
    wait_until(lambda: "policy, from Python" in page.text(".board.agent"), "it plays", 5)
    page.python("def broken(observation, ram, info):\n    return [][1]\nawait pyapp.play(broken)")
    wait_until(lambda: "the policy raised IndexError" in page.text("#play"), "its error is shown", 5)
    before = game.console()["frame"]
    wait_until(lambda: game.console()["frame"] > before + 30, "the visitor plays on", 5)
    assert "return [][1]" in page.driver.execute_script("return document.querySelector('#console .log').textContent")
    refused = page.page.evaluate("await pyapp.play(3)")["traceback"]
    assert "a policy is a function, or has a method decide; 3 is neither" in refused
    game.choose("wasm-1")
    wait_until(lambda: "Agent on wasm-1" in page.text(".board.agent"), "the agent goes on", 10)


ONLY_SERVES = """
from pyapp.breakout.agent import Decision

class OnlyServes:
    async def decide(self, observation, info):
        return Decision(1)

await page.agent.play(OnlyServes())
"""


def test_the_agent_beats_a_random_policy_over_the_same_seeds(page, game):
    game.speed("max")
    game.pause()
    agent, random = json.loads((page.python(DUEL) or "").strip("'"))
    assert all(a > r for a, r in zip(agent, random, strict=True)), (agent, random)


DUEL = """
import json
from pyapp.breakout.agent import RandomPolicy

async def scores(policies):
    loop, found = page.agent.runner.loop, []
    for seed, policy in enumerate(policies, 1):
        await loop.exchange(policy)
        await loop.restart(seed)
        for _ in range(400):
            if not await loop.step():
                break
        found.append(loop.score)
    return found

seeds = range(1, 4)
json.dumps([await scores([page.agent.runner.loop.policy for _ in seeds]), await scores([RandomPolicy(seed) for seed in seeds])])
"""


def test_216000_frames_at_full_speed_do_not_grow_memory(page, game):
    """An hour of play, by a policy that asks no engine; the board is shown, and the page is told, as always."""
    game.speed("max")
    page.python(HOUR)
    play(page, 216_000 // 10)  # the times that are kept fill up, and so do pools
    before = memory(page)
    assert play(page, 216_000) >= 216_000
    after = memory(page)
    assert game.state == "playing"
    for name in ("emulator", "python"):
        assert after[name] == before[name], (before, after)
    assert after["objects"] < before["objects"] * 1.01, (before, after)
    assert after["scripts"] < before["scripts"] + 2e6, (before, after)


def test_games_that_were_started_anew_leave_no_memory(page, game):
    """Each had a board in Python's worker, with canvases and frames of half a MB; at full speed it listens to a port."""

    def anew():
        game.speed("max")
        game.press("Start anew")
        wait_until(lambda: game.state == "playing" and game.agent_frames > 100, "the new game plays", 20)
        page.python("import gc; gc.collect()")  # Python's half of a board goes with a cycle of objects
        return scripts(page)

    before = anew()
    after = [anew() for _ in range(4)]
    assert after[-1] < before + 1e6, (before, after)


def play(page, frames):
    return int(page.python(f"await play({frames})"))


def memory(page):
    """Return bytes of the emulator, of Python's heap and of all JavaScript, wasm included; and how many objects Python has."""
    found = json.loads(page.python("memory()").strip("'"))
    return found | {"scripts": scripts(page)}


def scripts(page):
    """Return the bytes of all JavaScript, wasm included."""
    return int(page.page.run("return (await performance.measureUserAgentSpecificMemory()).bytes"))


HOUR = """
import asyncio, gc, json
import pyodide_js
from pyapp.breakout.agent import RandomPolicy

runner = page.agent.runner
ale = (await page._bridge.cartridge()).ale

def memory():
    gc.collect()
    return json.dumps({"emulator": ale.bytes, "python": pyodide_js._module.HEAP8.length, "objects": len(gc.get_objects())})

async def play(frames):
    played = 0
    while played < frames:
        await runner.restart(None)
        while runner.state == "playing":
            await asyncio.sleep(0.02)
        played += runner.loop.frames
    return played

await page.agent.play(RandomPolicy(1))
"""


# Sites and browsers that lack something.


def test_without_a_rom_in_the_site_the_visitor_brings_one(visit, dist, tmp_path):
    site = tmp_path / "site"
    shutil.copytree(dist, site)
    app = app_folder(site)
    rom = shutil.move(app / "ale" / "breakout.bin", tmp_path / "my game.bin")
    facts = json.loads((app / "site.json").read_text())
    (app / "site.json").write_text(json.dumps(facts | {"rom_path": None}))
    other = tmp_path / "other.bin"
    other.write_bytes(b"\0" * 2048)
    with visit(site=site) as page:
        game = Game(page)
        picker = page.driver.find_element("css selector", "#rom-file")
        assert picker.is_displayed()
        assert "no ROM" in page.page.evaluate("await open_breakout()")["traceback"]
        picker.send_keys(str(other))
        wait_until(lambda: game.error, "the wrong ROM is refused", 10)
        assert "c99a74c555371a433d121f551d6c6398" in game.error
        assert "f34f08e5eb96e500e851a80be3277a56" in game.error
        assert picker.is_displayed()
        picker.send_keys(str(rom))
        wait_until(lambda: game.state == "playing", "the game plays", 20)
        assert game.changes("agent")
        assert not picker.is_displayed()


def test_without_offscreen_canvases_the_page_draws(page):
    script = "delete HTMLCanvasElement.prototype.transferControlToOffscreen"
    added = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        page.driver.refresh()
        page.page.wait_ready()
        game = Game(page)
        game.start()
        assert game.changes("agent")
        hold(game, Keys.SPACE, 0.3)
        assert game.changes("you")
        assert page.driver.execute_script("return document.querySelector('.board.you canvas').getContext('2d') !== null")
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})


def test_without_python_the_visitor_plays_on(page):
    script = """
        self.Worker = class extends Worker {
            constructor(...given) {
                super(...given);
                self.python ??= this;
            }
        };
    """
    added = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        page.driver.refresh()
        page.page.wait_ready()
        game = Game(page)
        game.start()
        crash = "python.terminate(); python.dispatchEvent(new ErrorEvent('error', { message: 'out of memory' }))"
        page.driver.execute_script(crash)
        assert "Python stopped: out of memory" in page.text("#error")
        assert "your game goes on" in game.status
        before = game.console()["frame"]
        wait_until(lambda: game.console()["frame"] > before + 30, "the visitor plays on", 3)
        for text, state in (("Pause", "paused"), ("Resume", "playing"), ("Restart", "playing")):
            game.press(text)
            wait_until(lambda state=state: game.state == state, f"{text} works", 3)
        assert not game.error
        wait_until(lambda: 0 < game.console()["frame"] < 60, "the visitor begins again", 3)
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": added["identifier"]})
        page.driver.refresh()
        page.page.wait_ready()


def test_without_isolation_the_agent_plays_by_message(visit, dist, tmp_path):
    # A service worker would add the headers.
    with visit(isolated=False, site=quiet_site(dist, tmp_path)) as page:
        game = Game(page)
        game.start()
        wait_until(lambda: game.agent_frames > 60, "the agent plays", 10)
        assert page.python("page.agent.runner.loop.policy.engine._lane is None") == "True"
