/** Rounds: one is over when both games are, and the higher score has won it. */

/** @typedef {'you' | 'agent'} Side */

export class Rounds {
  /** @type {Record<Side, number | null>} the scores of games that are over */
  #ended = { you: null, agent: null };
  /** @type {Record<Side, number>} */
  won = { you: 0, agent: 0 };

  /** Whether both games of this round are over. */
  get over() {
    return this.#ended.you !== null && this.#ended.agent !== null;
  }

  /** Begins another round. */
  next() {
    this.#ended = { you: null, agent: null };
  }

  /** Whether a game of this round is over. @param {Side} side */
  hasEnded(side) {
    return this.#ended[side] !== null;
  }

  /**
   * A game is over.
   * @param {Side} side
   * @param {number} score
   * @returns {string} what there is to say about it
   */
  end(side, score) {
    this.#ended[side] = score;
    const { you, agent } = this.#ended;
    if (agent === null) return 'Your game is over, the agent plays on; at speed max its end comes sooner.';
    if (you === null) return "The agent's game is over; play on.";
    if (you === agent) return `A draw: ${you} points each. Restart for the next round.`;
    const winner = you > agent ? 'you' : 'agent';
    this.won[winner]++;
    return `${you > agent ? 'You win' : 'The agent wins'} the round, ${Math.max(you, agent)} to ${Math.min(you, agent)}. Restart for the next one.`;
  }
}
