import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # tests of the engine share `twin.py` and `differences.py`
