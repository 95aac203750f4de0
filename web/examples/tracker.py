# Your policy plays on the right-hand board, from its present state. Press Start up there first.
# It may look at the observation (uint8 [4, 84, 84]), at the console's memory and at the lives; it returns an action.
BALL_X, BALL_Y, PADDLE_X = 99, 101, 72  # where the game keeps them
MIDDLE = 8  # of the paddle


def policy(observation, ram, info):
    if ram[BALL_Y] == 0:
        return "FIRE"
    off = int(ram[BALL_X]) - int(ram[PADDLE_X]) - MIDDLE
    if abs(off) <= 3:
        return "NOOP"
    return "RIGHT" if off > 0 else "LEFT"


try:
    await pyapp.play(policy)
    print("It plays. Choose an engine above to let the agent go on.")
except pyapp.AppError as error:
    print(f"{error.message}. {error.remedy}")
