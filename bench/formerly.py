"""Builds the program at an earlier commit, to measure it beside the current one."""

import os
import subprocess
import tempfile

ROOT = os.path.realpath(f"{os.path.dirname(__file__)}/..")


def program_of(commit, directory):
    """Builds the program at a commit into a directory, unless it exists; returns the commit's short hash and the path."""
    number = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", commit], check=True, capture_output=True, text=True).stdout.strip()
    path = f"{directory}/orrery-{number}"
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory() as source:
            subprocess.run(f"git -C {ROOT} archive {number} | tar -x -C {source}", shell=True, check=True)
            subprocess.run([f"{ROOT}/packaging/go", "build", "-trimpath", "-o", path, "./cmd/orrery"], check=True, cwd=source, env={**os.environ, "CGO_ENABLED": "0"})
    return number, path
