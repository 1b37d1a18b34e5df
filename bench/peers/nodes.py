"""N system containers directly on LXC: the least work with the same result as Orrery."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import overlay
import ready

BRIDGE, SUBNET = "br-bench", "10.203.0"

# If newuidmap is not in its path, LXC as root writes the id maps itself and does not need /etc/subuid.
LXC_PATH = {**os.environ, "PATH": "/usr/sbin:/sbin"}

# These units fail in an unprivileged container of LXC or LXD, and systemd would be "degraded".
MASKED = ["sys-kernel-debug.mount", "systemd-binfmt.service"]


def run(*command, **options):
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            stdin=subprocess.DEVNULL, **options)
    if result.returncode:
        raise SystemExit(f"{' '.join(command)}: status {result.returncode}\n{result.stdout}")
    return result.stdout


def at_once(function, items):
    """Calls function for all items concurrently; returns the results in order."""
    items = list(items)
    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))


def address(number):
    return f"{SUBNET}.{number + 1}"


def make_bridge():
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    run("ip", "address", "add", f"{SUBNET}.254/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")


def make_seed(seed, authorized_key=None):
    """Creates what a bare base needs to be a node: SSH host keys, a machine-id (a first boot is slower), and no unit
    that fails in an unprivileged container. It is the same for all nodes and created before the clock starts."""
    for path in "etc/ssh", "etc/systemd/system", "root/.ssh":
        os.makedirs(f"{seed}/{path}")
    for kind in "ed25519", "ecdsa", "rsa":
        run("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", f"{seed}/etc/ssh/ssh_host_{kind}_key")
    with open(f"{seed}/etc/machine-id", "w") as file:
        file.write("0123456789abcdef0123456789abcdef\n")
    for unit in MASKED:
        os.symlink("/dev/null", f"{seed}/etc/systemd/system/{unit}")
    os.chmod(f"{seed}/root", 0o700)
    os.chmod(f"{seed}/root/.ssh", 0o700)
    if authorized_key:
        shutil.copy(authorized_key, f"{seed}/root/.ssh/authorized_keys")


class Nodes:
    """Nodes 1..count on the same lower trees (top first), each with a private upper tree on the disk of `work`."""

    def __init__(self, work, count, lowers):
        self.work, self.lowers = work, lowers
        self.numbers = range(1, count + 1)

    def name(self, number):
        return f"n{number}"

    def start(self):
        """Returns systemd's state of each node."""
        os.makedirs(f"{self.work}/private")
        os.makedirs(f"{self.work}/mapped")
        namespace = overlay.user_namespace()
        self.mapped = []
        for number, lower in enumerate(self.lowers):
            self.mapped.append(f"{self.work}/lower{number}")
            os.mkdir(self.mapped[-1])
            overlay.bind_mapped(lower, self.mapped[-1], namespace)
        overlay.bind_mapped(f"{self.work}/private", f"{self.work}/mapped", namespace)
        os.close(namespace)
        return at_once(self.start_one, self.numbers)

    def start_one(self, number):
        name = self.name(number)
        for path in "upper", "work":
            os.makedirs(f"{self.work}/private/{name}/{path}")
        rootfs = f"{self.work}/lxc/{name}/rootfs"
        os.makedirs(rootfs)
        overlay.mount(self.mapped, f"{self.work}/mapped/{name}", rootfs)
        with open(f"{self.work}/lxc/{name}/config", "w") as config:
            config.write(self.config(number, rootfs))
        self.lxc("lxc-start", number, "--logfile", f"{self.work}/lxc/{name}/log", "--logpriority=WARN")
        return ready.wait(name, address(number))

    def config(self, number, rootfs):
        first, count = overlay.IDS
        return f"""\
lxc.include = /usr/share/lxc/config/common.conf
lxc.include = /usr/share/lxc/config/userns.conf
lxc.idmap = u 0 {first} {count}
lxc.idmap = g 0 {first} {count}
lxc.rootfs.path = dir:{rootfs}
lxc.uts.name = {self.name(number)}
lxc.net.0.type = veth
lxc.net.0.link = {BRIDGE}
lxc.net.0.name = eth0
lxc.net.0.flags = up
lxc.net.0.ipv4.address = {address(number)}/24
"""

    def lxc(self, verb, number, *options):
        return run(f"/usr/bin/{verb}", "-P", f"{self.work}/lxc", "-n", self.name(number), *options, env=LXC_PATH)

    def delete(self):
        at_once(self.delete_one, self.numbers)
        for path in *self.mapped, f"{self.work}/mapped":
            overlay.unmount(path)

    def delete_one(self, number):
        self.lxc("lxc-stop", number, "--kill")
        overlay.unmount(f"{self.work}/lxc/{self.name(number)}/rootfs")
        shutil.rmtree(f"{self.work}/lxc/{self.name(number)}")
        shutil.rmtree(f"{self.work}/private/{self.name(number)}")
