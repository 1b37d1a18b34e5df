"""The roles' folders are no packages (their files are laid side by side on a node): make them importable."""

import sys
from pathlib import Path

for role in ("receptor", "portal"):
    sys.path.insert(0, str(Path(__file__).parent.parent / "roles" / role))
