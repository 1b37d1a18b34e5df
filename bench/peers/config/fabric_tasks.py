"""fabric_tasks.py INVENTORY: runs the ten steps on all nodes concurrently, over one connection each."""

import io
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from fabric import Connection
from jinja2 import Template

ROLE = os.environ["BENCH_ROLE"]
HERE = os.path.dirname(os.path.realpath(__file__))


def put(node, source, path, mode):
    node.put(source, path)
    node.run(f"chmod {mode} {path}", hide=True)


def configure(user, key, name, address):
    with open(f"{HERE}/gauge.json.j2") as file:
        own = Template(file.read()).render(node_name=name, node_address=address) + "\n"
    with Connection(address, user=user, connect_kwargs={"key_filename": key, "allow_agent": False}) as node:
        node.run("DEBIAN_FRONTEND=noninteractive apt-get -qy --no-install-recommends install jq rsync tree", hide=True)
        node.run("id gauge 2>/dev/null || useradd --system --home-dir /var/lib/gauge --shell /usr/sbin/nologin gauge",
                 hide=True)
        node.run("install --directory --owner=gauge --group=gauge --mode=0750 /var/lib/gauge", hide=True)
        put(node, f"{ROLE}/gauge", "/usr/local/bin/gauge", "0755")
        put(node, f"{ROLE}/profile.sh", "/etc/profile.d/gauge.sh", "0644")
        put(node, io.StringIO(own), "/etc/gauge.json", "0644")
        put(node, f"{ROLE}/gauge.service", "/etc/systemd/system/gauge.service", "0644")
        node.run("ln -sf gauge /usr/local/bin/meter", hide=True)
        node.run("[ -e /var/lib/gauge/table.json ] || /usr/local/bin/gauge table >/var/lib/gauge/table.json", hide=True)
        node.run("systemctl daemon-reload && systemctl enable --now gauge.service", hide=True)


with open(sys.argv[1]) as file:
    inventory = json.load(file)
with ThreadPoolExecutor(len(inventory["nodes"])) as pool:
    list(pool.map(lambda node: configure(inventory["user"], inventory["key"], *node), inventory["nodes"].items()))
