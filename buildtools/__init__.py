"""The parts of ``build_wheel.py``, one concern each; nothing here is shipped to the browser."""
