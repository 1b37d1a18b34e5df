"""The client that measures outages: its own network namespace on the live bridge (client/main.go), and the windows in which it measures."""

import contextlib
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [f"{HERE}/../peers"]
import confined
import nodes

PROGRAMS = f"{confined.CACHE}/switch"  # run builds client and echo here
SAMPLE = 8  # maximum number of nodes of a set that requests are sent to


def echo_unit(address):
    """Returns the systemd unit of the nodes' service; the client has that address."""
    return f"""\
[Service]
ExecStart=/usr/local/bin/echo-bench {address}
[Install]
WantedBy=multi-user.target
"""


# An Orrery role with that service.
ROLE = """\
[[file]]
path = "/usr/local/bin/echo-bench"
source = "echo"
mode = "0755"
[[file]]
path = "/etc/systemd/system/echo.service"
source = "echo.service"
[[service]]
name = "echo.service"
[[health]]
tcp = 7007
"""


def files(address):
    """Returns the files of the role, by name."""
    with open(f"{PROGRAMS}/echo", "rb") as file:
        return {"echo": file.read(), "echo.service": echo_unit(address).encode()}


class Client:
    def __init__(self, bridge, address, slower=1):
        # Measure the nodes' outage, not how long the client waits for a processor.
        # Do not use real-time priority: the client never sleeps, and the kernel would throttle it in each second.
        self.process = subprocess.Popen(["unshare", "--net", "nice", "-n", "-15", f"{PROGRAMS}/client", str(slower)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.say("begin")  # it answers when it is in its namespace
        place = str(self.process.pid)
        nodes.run("ip", "link", "add", "client0", "type", "veth", "peer", "name", "eth0", "netns", place)
        nodes.run("ip", "link", "set", "client0", "master", bridge, "up")
        for words in ("address add " + address + "/24 dev eth0", "link set eth0 up", "link set lo up"):
            nodes.run("nsenter", f"--target={place}", "--net", "ip", *words.split())

    def say(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the client ended unexpectedly")
        said = json.loads(line)
        if "failed" in said:
            raise SystemExit(f"client: {said['failed']}")
        return said

    def ask(self, addresses):
        """Sends requests to a sample of nodes, spread over all of them, from now on."""
        step = max(1, len(addresses) // SAMPLE)
        self.say("targets", *addresses[::step][:SAMPLE])
        self.say("await")

    @contextlib.contextmanager
    def window(self, result, changes=True):
        """Adds to result the longest outage of any node while something switches the nodes, or nothing happens."""
        self.say("await")
        time.sleep(0.3)
        self.say("begin")
        time.sleep(0.2)
        begun = time.monotonic()
        yield
        result["seconds"] = round(time.monotonic() - begun, 4)
        if changes:
            self.say("changed")
        self.say("await")
        time.sleep(0.2)
        said = self.say("end")
        for way in "ping", "udp", "tcp":
            result[way] = round(max(said[way]), 5)


def measure(client, peer, count, there, back, rounds):
    """Prints a line for each outage: of no action (what the client itself misses), of a switch, and of a switch back."""
    for number in range(1, rounds + 1):
        for what, do in ("nothing", None), ("switch", there), ("rollback", back):
            result = {"peer": peer, "n": count, "round": number, "what": what}
            with client.window(result, changes=do is not None):
                do() if do else time.sleep(0.5)
            print(json.dumps(result), flush=True)
