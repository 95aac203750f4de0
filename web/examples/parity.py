# Does an engine choose what Python chose? Ask it, state by state.
engine = await open_engine("wasm-1")
try:
    worst = 0.0
    for case in range(len(states)):
        scores = (await engine.run(states.inputs(case)))["q_values"][0]
        worst = max(worst, float(abs(scores - states.q_values[case]).max()))
        if scores.argmax() != states.action[case]:
            print(f"case {case}: chose {scores.argmax()}, Python chose {states.action[case]}")
    print(f"largest difference of a score: {worst:.1e}")
    result = await pyapp.parity(engine, states)  # the same, as a result
finally:
    await engine.close()
result
