"""The game on the page, as a visitor sees it: nothing here asks the page's own flags what was drawn or played."""

from __future__ import annotations

from typing import Any

from .visit import Visit, wait_until

PADDLE = 72
"""The paddle's place in the console's memory."""

MIDDLE = 39
"""What has to be taken from it for the paddle's middle on the screen, in the game's 160 pixels."""


class Game:
    """Both boards of a page."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.driver = visit.driver

    def start(self, *, engine: str = "wasm-1", seed: str = "1") -> None:
        """Choose, and press Start."""
        self.choose(engine, change=False)
        self.type_seed(seed)
        self.press("Start")
        wait_until(lambda: self.state == "playing" or self.error, "the game plays", 30)
        assert not self.error, self.error

    def type_seed(self, seed: str) -> None:
        field = self.driver.find_element("css selector", "#play input[inputmode=numeric]")
        field.clear()
        field.send_keys(seed)

    def pause(self) -> None:
        """Press Pause, and wait until both games stand."""
        self.press("Pause")
        wait_until(lambda: self.state == "paused", "the games pause", 3)

    def choose(self, engine: str, *, change: bool = True) -> None:
        script = """
            const choice = document.querySelector('#play select');
            choice.value = arguments[0];
            if (choice.value !== arguments[0]) throw new Error(`there is no ${arguments[0]}`);
            if (arguments[1]) choice.dispatchEvent(new Event('change'));
        """
        self.driver.execute_script(script, engine, change)

    def press(self, text: str) -> None:
        """Press the button with this text."""
        buttons = self.driver.find_elements("css selector", "#play button")
        [found] = [button for button in buttons if button.text.startswith(text) and button.is_displayed()]
        found.click()

    def speed(self, label: str) -> None:
        """Choose the agent's speed: 1×, 2× or max."""
        [radio] = self.driver.find_elements("xpath", f"//fieldset[@class='speeds']//label[contains(., '{label}')]/input")
        radio.click()

    @property
    def state(self) -> str:
        found: str = self.visit.page.run("return pyappPage.play.state")
        return found

    @property
    def error(self) -> str:
        return self.visit.text("#play .error")

    @property
    def status(self) -> str:
        return self.visit.text("#play [role=status]")

    def console(self) -> dict[str, Any]:
        """Return the memory of the visitor's console, and its frame number."""
        script = "const { ram, frame } = await pyappPage.play.probe(); return { ram: [...ram], frame }"
        found: dict[str, Any] = self.visit.page.run(script)
        return found

    @property
    def paddle(self) -> int:
        """Where the middle of the visitor's paddle is, 0 … 159."""
        return int(self.console()["ram"][PADDLE]) - MIDDLE

    @property
    def agent_frames(self) -> int:
        """Frames of the agent's game, from the emulator in Python's worker."""
        return int(self.visit.python("page.agent.runner.loop.environment.emulator.episode_frame_number") or 0)

    def pixels(self, board: str) -> int:
        """Return a checksum of what a board's canvas shows, as a visitor's screen would have it."""
        script = """
            const shown = document.querySelector(`.board.${arguments[0]} canvas.game`);
            const copy = new OffscreenCanvas(shown.width, shown.height).getContext('2d');
            copy.drawImage(shown, 0, 0);
            return copy.getImageData(0, 0, shown.width, shown.height).data.reduce((sum, byte) => (31 * sum + byte) >>> 0, 7);
        """
        return int(self.driver.execute_script(script, board))

    def changes(self, board: str, limit_s: float = 3) -> bool:
        """Tell whether what a board shows changes within the limit."""
        before = self.pixels(board)
        try:
            wait_until(lambda: self.pixels(board) != before, "another picture", limit_s)
        except AssertionError:
            return False
        return True
