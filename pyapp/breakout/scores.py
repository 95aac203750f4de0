"""What whole games come to: an engine's entry in the report, made from its games alone, so that parts can be merged."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pyapp import report as r
from pyapp.sections import score_rows
from pyapp.stats import mean_interval

if TYPE_CHECKING:
    from pyapp.breakout.games import Departure, Game, Start
    from pyapp.breakout.tournament import Finished


def played_game(one: Finished, reference: Mapping[Start, Game]) -> r.PlayedGame:
    """State one finished game; `reference` holds the games that were played with the same epsilon."""
    game, expected = one.game, reference.get(one.game.start)
    return r.PlayedGame(
        seed=game.start.seed,
        opening=game.start.opening,
        score=game.score,
        decisions=game.decisions,
        truncated=game.truncated,
        seconds=round(one.seconds, 3),
        sha256=hashlib.sha256(game.actions.encode("ascii")).hexdigest(),
        reference_score=expected.score if expected else None,
        departure=_departure(one.departure) if one.departure else None,
    )


def _departure(found: Departure) -> r.DepartureEntry:
    q_values, reference = score_rows(np.stack([found.q_values, found.reference_q_values]))
    return r.DepartureEntry(
        decision=found.decision,
        action=found.action,
        expected=found.expected,
        q_values=q_values,
        reference_q_values=reference,
        margin=found.margin,
        error=found.error,
        explained=found.explained,
        state=base64.b64encode(zlib.compress(found.observation.tobytes())).decode("ascii"),
    )


def tournament_entry(
    engine: str,
    played: Sequence[r.PlayedGame],
    *,
    epsilon: float,
    lanes: int,
    error: r.Failure | None = None,
    warnings: Iterable[str] = (),
    seed: int = 0,
) -> r.TournamentEntry:
    """Sum up an engine's games; `seed` is that of the intervals' bootstrap."""
    scores = [game.score for game in played]
    pairs = [(game.score, game.reference_score) for game in played if game.reference_score is not None]
    mean = mean_interval(scores, seed=seed) if scores else None
    difference = mean_interval([score - other for score, other in pairs], seed=seed) if pairs else None
    decisions, seconds = sum(game.decisions for game in played), sum(game.seconds for game in played)
    departures = [game.departure for game in played if game.departure]
    told = [*warnings, *_lost(error)]
    return r.TournamentEntry(
        engine=engine,
        epsilon=epsilon,
        lanes=lanes,
        games=len(played),
        truncated=sum(game.truncated for game in played),
        mean=mean.value if mean else None,
        low=mean.low if mean else None,
        high=mean.high if mean else None,
        median=float(np.median(scores)) if scores else None,
        min=min(scores, default=None),
        max=max(scores, default=None),
        mean_decisions=decisions / len(played) if played else None,
        decisions_per_s=decisions / seconds if seconds else None,
        games_per_min=60 * len(played) / seconds if seconds else None,
        compared=len(pairs),
        departures=len(departures),
        unexplained=sum(not departure.explained for departure in departures),
        reference_mean=float(np.mean([other for _, other in pairs])) if pairs else None,
        difference_low=difference.low if difference else None,
        difference_high=difference.high if difference else None,
        played=list(played),
        error=error,
        valid=error is None,
        warnings=told,
    )


def _lost(error: r.Failure | None) -> list[str]:
    return [f"it plays no more: {error.message}. {error.remedy}".strip()] if error else []


def merged_entries(parts: Iterable[Iterable[r.TournamentEntry]]) -> list[r.TournamentEntry]:
    """Put together what several browsers have played: an entry an engine, in the order in which engines first appear.

    Raises
    ------
    ValueError
        A game is there twice, or an engine's games were played with different epsilons.
    """
    by_engine: dict[str, list[r.TournamentEntry]] = {}
    for part in parts:
        for entry in part:
            by_engine.setdefault(entry.engine, []).append(entry)
    return [_merged(engine, entries) for engine, entries in by_engine.items()]


def _merged(engine: str, entries: list[r.TournamentEntry]) -> r.TournamentEntry:
    played = sorted((game for entry in entries for game in entry.played), key=lambda game: (game.seed, game.opening))
    for game, after in pairwise(played):
        if (game.seed, game.opening) == (after.seed, after.opening):
            raise ValueError(f"{engine} played the game with seed {game.seed} and opening {game.opening} twice")
    if len(epsilons := {entry.epsilon for entry in entries}) > 1:
        raise ValueError(
            f"{engine} played with the epsilons {', '.join(map(str, sorted(epsilons)))}: they cannot be put together"
        )
    error = next((entry.error for entry in entries if entry.error), None)
    warnings = dict.fromkeys(warning for entry in entries for warning in entry.warnings if warning not in _lost(entry.error))
    return tournament_entry(
        engine,
        played,
        epsilon=entries[0].epsilon,
        lanes=max(entry.lanes for entry in entries),
        error=error,
        warnings=warnings,
    )
