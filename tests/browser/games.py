"""Games that two emulators play: the same code on CPython and inside Pyodide.

`test_emulator.py` imports this module here and hands its source to the page, so it may import only what the wheel brings.
"""

import struct
from dataclasses import dataclass
from zlib import crc32

import numpy as np

BALL_X, PADDLE_X = 99, 72  # in the console's memory
STEP = struct.Struct("<IBBIIIII")
FIELDS = ("action", "lives", "ended", "reward", "frame", "ram", "screen", "observation")


@dataclass(frozen=True)
class Game:
    """One whole game: how the environment is set, and how it is played."""

    seed: int
    frame_skip: int
    sticky: float
    clumsiness: float
    """Chance of a random action; otherwise the paddle follows the ball."""

    def options(self):
        return {"frame_skip": self.frame_skip, "repeat_action_probability": self.sticky, "ram": True}


GAMES = (
    Game(seed=1, frame_skip=4, sticky=0.0, clumsiness=0.1),
    Game(seed=2, frame_skip=4, sticky=0.25, clumsiness=0.1),
    Game(seed=3, frame_skip=1, sticky=0.0, clumsiness=0.4),
    Game(seed=4, frame_skip=1, sticky=0.25, clumsiness=0.4),
    Game(seed=2**31 - 1, frame_skip=4, sticky=0.25, clumsiness=0.2),
    Game(seed=0, frame_skip=3, sticky=0.5, clumsiness=0.2),
)


def trace(env, game):
    """Play a game to its end, then one more from an unseeded reset; return what every step gave, as bytes of `STEP`."""
    random = np.random.default_rng(game.seed)
    found = bytearray()
    for start in ((game.seed, None), (None, {"idle": 7})):
        observation, info = env.reset(*start)
        found += STEP.pack(0, info["lives"], 0, 0, info["episode_frame_number"], *_checksums(env, observation, info))
        ended = False
        while not ended:
            action = _action(info, random, game)
            observation, reward, terminated, truncated, info = env.step(action)
            ended = terminated or truncated
            row = (action, info["lives"], ended, int(reward), info["episode_frame_number"])
            found += STEP.pack(*row, *_checksums(env, observation, info))
    return bytes(found)


def _action(info, random, game):
    if random.random() < game.clumsiness:
        return int(random.integers(4))
    ball, paddle = int(info["ram"][BALL_X]), int(info["ram"][PADDLE_X]) + 8
    if ball == 0:  # none in play
        return 1
    return 2 if ball > paddle + 2 else 3 if ball < paddle - 2 else 0


def _checksums(env, observation, info):
    return [crc32(np.ascontiguousarray(array)) for array in (info["ram"], env.screen(), observation)]


def first_difference(expected, found):
    """Return where two traces first differ, in words, or None."""
    for index, (before, now) in enumerate(zip(STEP.iter_unpack(expected), STEP.iter_unpack(found), strict=False)):
        for name, native, wasm in zip(FIELDS, before, now, strict=True):
            if native != wasm:
                return f"step {index}: {name} is {native} natively and {wasm} in wasm"
    if len(expected) != len(found):
        return f"{len(expected) // STEP.size} steps natively, {len(found) // STEP.size} in wasm"
    return None


def frames_of(found):
    """Return the emulator frames of a trace, idle ones included."""
    rows = list(STEP.iter_unpack(found))
    ends = [i for i, row in enumerate(rows) if i + 1 == len(rows) or rows[i + 1][4] < row[4]]
    return sum(rows[i][4] for i in ends)


async def agent_actions(env, run, seed):
    """Let the agent play one whole game; return its actions, one byte each, and its score.

    `run` is awaited with an observation, float32 [1,4,84,84], and gives the Q-values.
    """
    observation, _ = env.reset(seed)
    actions, score, ended = bytearray(), 0.0, False
    while not ended:
        q_values = await run(observation[np.newaxis].astype(np.float32))
        actions.append(int(np.argmax(q_values)))
        observation, reward, terminated, truncated, _ = env.step(actions[-1])
        score += reward
        ended = terminated or truncated
    return bytes(actions), score
