"""Waits until a node is ready, in the same way for every peer: sshd answers on its address, and systemd has started everything."""

import glob
import socket
import subprocess
import sys
import time

PATIENCE = 300  # seconds


def wait(name, address):
    """Waits until the container `name` (of LXC, LXD or Incus, or a control group with a "/", such as Orrery's) is
    ready; returns systemd's state."""
    deadline = time.monotonic() + PATIENCE
    while not ssh_answers(address):
        pause(deadline, f"{name}: sshd at {address}")
    # In this order, because sshd starts late, so that the one call of systemctl hardly waits.
    while (state := systemd_state(name)) not in ("running", "degraded"):
        pause(deadline, f"{name}: systemd ({state})")
    if state == "degraded":
        print(f"{name}: {inside(name, 'systemctl', '--failed', '--no-legend', '--plain')}", file=sys.stderr)
    return state


def pause(deadline, what):
    if time.monotonic() > deadline:
        raise SystemExit(f"{what} not ready after {PATIENCE} s")
    time.sleep(0.02)


def ssh_answers(address):
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            return connection.recv(8) == b"SSH-2.0-"
    except OSError:
        return False


def systemd_state(name):
    return inside(name, "systemctl", "is-system-running", "--wait")


def inside(name, *command):
    # nsenter, not lxc-attach or `lxc exec`, so that the check costs the same for every peer.
    return subprocess.run(
        ["nsenter", f"--target={init_pid(name)}", "--user", "--mount", "--pid", *command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.strip()


def init_pid(name):
    group = name if "/" in name else f"lxc.payload.{name}"
    for tree in "/sys/fs/cgroup/freezer", "/sys/fs/cgroup":  # v1, v2
        for file in glob.glob(f"{tree}/{group}/cgroup.procs") + glob.glob(f"{tree}/{group}/init.scope/cgroup.procs"):
            with open(file) as pids:
                if first := pids.readline().strip():
                    return first
    return "0"
