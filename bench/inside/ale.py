"""The emulator's frames and the environment's decisions, timed by the same code on CPython and inside Pyodide."""

import time

import numpy as np

from pyapp.breakout.preprocess import FrameStack, area_resize

ALE_ACTIONS = (0, 1, 3, 4)


def time_frames(emulator, count, seed):
    """Play `count` frames, four for an action, the last two pooled; returns the milliseconds of a frame, on average."""
    actions = np.random.default_rng(seed).integers(0, 4, count // 4).tolist()
    emulator.reset()
    played = 0
    start = time.perf_counter()
    for action in actions:
        played += emulator.play(ALE_ACTIONS[action], 4).frames
        if emulator.over:
            emulator.reset()
    return (time.perf_counter() - start) * 1000 / played


def time_decisions(environment, count, seed):
    """Play `count` decisions: four frames, max-pool, resize, stack; returns the milliseconds of each."""
    actions = np.random.default_rng(seed).integers(0, 4, count).tolist()
    environment.reset()
    taken = []
    for action in actions:
        start = time.perf_counter()
        _, _, terminated, truncated, _ = environment.step(action)
        taken.append((time.perf_counter() - start) * 1000)
        if terminated or truncated:
            environment.reset()
    return taken


def time_resizes(screen, count):
    """Resize and stack `count` times with numpy alone; returns the milliseconds of each."""
    stack = FrameStack()
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        stack.push(area_resize(screen))
        taken.append((time.perf_counter() - start) * 1000)
    return taken


async def main(frames, decisions, seed):
    """Time one block in the page."""
    with await open_breakout() as environment:  # noqa: F821 - the console's name
        environment.reset(seed)
        return block(environment, frames, decisions, seed)


def block(environment, frames, decisions, seed):
    """Time one block; returns milliseconds: of a frame, of each decision, of each resize in numpy."""
    return [
        time_frames(environment.emulator, frames, seed),
        time_decisions(environment, decisions, seed),
        time_resizes(environment.screen(), decisions // 4),
    ]
