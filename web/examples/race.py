# Which of two engines is faster here? They take turns in shuffled blocks.
names = ["wasm-1", "wasm-2"]
engines = [await open_engine(name) for name in names]
try:
    for engine in engines:
        await engine.run(states.inputs(0))  # the first run is not like the others
    lanes = await pyapp.race(engines, states.inputs(0), pyapp.RaceSettings(runs=60, warmup=5, seed=1))
finally:
    for engine in engines:
        await engine.close()
ratio = pyapp.ratio(lanes[1], lanes[0], seed=1, hidden=False)
found = f"{ratio.p50.value:.2f} times as long as {ratio.denominator} ({ratio.p50.low:.2f} to {ratio.p50.high:.2f})"
print(f"{ratio.numerator} takes {found}")
lanes
