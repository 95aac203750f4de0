"""Atari Breakout as the agent meets it: what it observes, what it can do, and what comes of it."""

from pyapp.breakout.actions import ACTIONS, ALE_ACTIONS
from pyapp.breakout.emulator import Emulator, EmulatorError, Played
from pyapp.breakout.environment import Breakout, Environment, Info, Options

__all__ = ["ACTIONS", "ALE_ACTIONS", "Breakout", "Emulator", "EmulatorError", "Environment", "Info", "Options", "Played"]
