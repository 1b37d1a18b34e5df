"""The roles' folders are no packages (their files are laid side by side on a node): make them importable."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # a __pycache__ in a role's folder would be part of the role

for role in ("receptor", "portal"):
    sys.path.insert(0, str(Path(__file__).parent.parent / "roles" / role))
