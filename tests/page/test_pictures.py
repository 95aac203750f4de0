"""Pictures of the page for people to look at, and one thing that a program can see in them: that it fits."""

from __future__ import annotations

from base64 import b64decode

import pytest
from browser import models

from .conftest import ROOT
from .game import Game
from .visit import wait_until

OUTPUT = ROOT / "tests" / "output"
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


def set_look(visit, width: int, scheme: str) -> None:
    visit.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    )
    visit.driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )


def take_picture(visit, name: str) -> None:
    OUTPUT.mkdir(exist_ok=True)
    picture = visit.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    (OUTPUT / f"{name}.png").write_bytes(b64decode(picture["data"]))


def overflow(visit) -> dict:
    """Return the document's widths, what sticks out of its card or the page, what is cut off below, words in two lines."""
    return visit.driver.execute_script("""
        const { scrollWidth, clientWidth } = document.documentElement;
        const edgeOf = (element) => element.closest('.card')?.getBoundingClientRect().right ?? clientWidth;
        const out = [...document.querySelectorAll('body *')].filter((element) =>
            !element.closest('.scroll > *, .log, .skip') && element.getBoundingClientRect().right > edgeOf(element) + 1);
        const cut = [...document.querySelectorAll('.film')].filter((film) => film.scrollHeight > film.clientHeight + 1);
        const lines = (cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
        };
        const words = [...document.querySelectorAll('.engine td')].filter((cell) => /^\\S+$/.test(cell.textContent));
        const broken = words.filter((cell) => lines(cell) > 1);
        const shown = (elements) => elements.map((element) => element.outerHTML.slice(0, 80));
        return { scrollWidth, clientWidth, out: shown(out), cut: shown(cut), broken: shown(broken) };
    """)


def background(visit) -> str:
    return visit.driver.execute_script("return getComputedStyle(document.body).backgroundColor")


def assert_fits(visit, name: str) -> None:
    seen = set()
    for width in WIDTHS:
        for scheme in SCHEMES:
            set_look(visit, width, scheme)
            take_picture(visit, f"{name}-{width}-{scheme}")
            found = overflow(visit)
            assert found["clientWidth"] == pytest.approx(width, abs=20)
            assert found["scrollWidth"] <= found["clientWidth"], f"{name} at {width}: {found}"
            assert (found["out"], found["cut"], found["broken"]) == ([], [], []), f"{name} at {width}"
            seen.add(background(visit))
    assert len(seen) == 2, f"light and dark look the same: {seen}"


def test_the_page_fits_after_its_boot(visit):
    with visit() as page:
        assert_fits(page, "booted")


def test_the_page_fits_with_a_whole_checks_results(checked):
    assert_fits(checked.visit, "checked")


def test_the_page_fits_with_states_that_disagree(visit):
    with visit("?engines=wasm-1,webgpu-stock&runs=3&warmup=0") as page:
        page.give_model(models.changed_weight())
        page.check_by_click()
        assert page.has("#answers .walk .bad")
        assert_fits(page, "trouble")


def test_the_page_fits_while_the_game_is_played_and_after_the_engine_is_lost(visit):
    with visit() as page:
        game = Game(page)
        game.start()
        game.press("Show what it sees")
        wait_until(lambda: game.agent_frames > 150, "the agent has played for a while", 10)
        assert_fits(page, "played")
        page.python("page.agent.runner.loop.policy.engine._worker.end()")
        wait_until(lambda: game.error, "the loss is told", 5)
        assert_fits(page, "lost")
