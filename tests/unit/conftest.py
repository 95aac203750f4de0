from hypothesis import settings

# How long an example takes is no test's business: on a busy machine a deadline fails what is right.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
