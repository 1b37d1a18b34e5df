import os

from pyinfra import host
from pyinfra.operations import apt, files, server, systemd

ROLE = os.environ["BENCH_ROLE"]
HERE = os.path.dirname(os.path.realpath(__file__))

apt.packages(name="1 packages", packages=["jq", "rsync", "tree"], no_recommends=True)
server.user(name="2 user", user="gauge", system=True, home="/var/lib/gauge", create_home=False,
            ensure_home=False, shell="/usr/sbin/nologin")
files.directory(name="3 directory", path="/var/lib/gauge", user="gauge", group="gauge", mode="750")
files.put(name="4 program", src=f"{ROLE}/gauge", dest="/usr/local/bin/gauge", mode="755")
files.put(name="5 file", src=f"{ROLE}/profile.sh", dest="/etc/profile.d/gauge.sh", mode="644")
files.template(name="6 file of each node's own", src=f"{HERE}/gauge.json.j2", dest="/etc/gauge.json", mode="644",
               node_name=host.data.node_name, node_address=host.data.node_address)
files.put(name="7 unit", src=f"{ROLE}/gauge.service", dest="/etc/systemd/system/gauge.service", mode="644")
files.link(name="8 link", path="/usr/local/bin/meter", target="gauge")
server.shell(name="9 command, once", commands=[
    "[ -e /var/lib/gauge/table.json ] || /usr/local/bin/gauge table >/var/lib/gauge/table.json"])
systemd.service(name="10 service", service="gauge.service", daemon_reload=True, enabled=True, running=True)
