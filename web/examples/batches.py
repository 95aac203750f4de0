# What does a state cost in a batch?
engine = await open_engine("wasm-1")
try:
    for batch in (1, 2, 4, 8, 16, 32):
        inputs = {"observation": states.observation[:batch].astype(np.float32)}
        await engine.run(inputs)
        timed = await engine.time(inputs, 10)
        median = float(np.median(timed.samples_ms))
        print(f"batch {batch:3}: {median:8.2f} ms a run, {median / batch:6.3f} ms a state")
finally:
    await engine.close()
