"""What the agent can do."""

ACTIONS = ("NOOP", "FIRE", "RIGHT", "LEFT")
"""The agent's actions, in the order of the model's outputs."""

ALE_ACTIONS = (0, 1, 3, 4)
"""The Arcade Learning Environment's number of each of `ACTIONS`; its minimal action set for Breakout."""
