# Which pixels does the chosen action hang on? Cover the newest frame patch by patch, and see how far its score falls.
case, patch = 0, 7
observation = states.inputs(case)["observation"]
engine = await open_engine("wasm-1")
try:
    scores = (await engine.run({"observation": observation}))["q_values"][0]
    action = int(scores.argmax())
    saliency = np.zeros((84, 84), np.float32)
    for top in range(0, 84, patch):
        rows = []
        for left in range(0, 84, patch):
            covered = observation.copy()
            covered[0, -1, top : top + patch, left : left + patch] = 0
            rows.append(covered[0])
        falls = scores[action] - (await engine.run({"observation": np.stack(rows)}))["q_values"][:, action]
        saliency[top : top + patch] = np.repeat(falls, patch)
finally:
    await engine.close()
print(f"action {action}, score {scores[action]:.3f}; bright pixels carry it")
saliency
