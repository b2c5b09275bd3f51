import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "trace"))  # `histories.py` says what a program may say
