"""The program as it was at a commit, to be measured beside the one of today."""

import os
import subprocess
import tempfile

ROOT = os.path.realpath(f"{os.path.dirname(__file__)}/..")


def program_of(commit, directory):
    """Builds it into a directory, if it is not there yet; gives the commit's short number and the path."""
    number = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", commit], check=True, capture_output=True, text=True).stdout.strip()
    path = f"{directory}/orrery-{number}"
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory() as source:
            subprocess.run(f"git -C {ROOT} archive {number} | tar -x -C {source}", shell=True, check=True)
            subprocess.run([f"{ROOT}/packaging/go", "build", "-trimpath", "-o", path, "./cmd/orrery"], check=True, cwd=source, env={**os.environ, "CGO_ENABLED": "0"})
    return number, path
