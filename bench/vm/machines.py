"""Virtual machines of Orrery, and the same ones started by hand, in a sandbox (../peers/sandbox). All parts of bench/vm use this module."""

import glob
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [f"{HERE}/../peers"]
import confined
import nodes

ORRERY = os.environ.get("ORRERY", f"{HERE}/../../bin/orrery")
BASE = f"{confined.CACHE}/orrery/base.tar"  # written by bench/orrery prepare
CACHE = f"{confined.CACHE}/vm"  # written by prepare: a state directory with the layers built, Orrery's command lines, await
SITE, SUBNET = "bench", "10.206.0"
BRIDGE, BESIDE = "br-hand", "10.207.0"  # the subnet of machines started by hand beside a site
PATIENCE = 600  # seconds, for one machine

# A service that echoes each line it receives on a TCP connection.
PARROT = """\
[Service]
ExecStart=/usr/bin/systemd-socket-activate --listen=7007 --accept --inetd /bin/cat
[Install]
WantedBy=multi-user.target
"""
PARROT_UNIT, PARROT_PORT = "etc/systemd/system/parrot.service", 7007


class Site:
    """A site of virtual machines with its own state and run directories, which only share the layers."""

    def __init__(self, work, count, memory, **declared):
        self.directory, self.state, self.run = f"{work}/site", f"{work}/state", f"{work}/run"
        self.names = {number: f"n{number:03}" for number in range(1, count + 1)}
        for part in "cache", "store":
            os.makedirs(f"{self.state}/{part}")
            nodes.run("mount", "--bind", f"{CACHE}/state/{part}", f"{self.state}/{part}")
        os.makedirs(self.run)
        os.makedirs("/run/orrery", exist_ok=True)
        for path in self.run, "/run/orrery":  # the latter records where the sites of a machine are stored
            nodes.run("mount", "-t", "tmpfs", "run", path)
        write(self.directory, count, memory, **declared)

    def words(self, *words):
        return [ORRERY, "-C", self.directory, *words]

    def environment(self):
        return {**os.environ, "ORRERY_STATE": self.state, "ORRERY_RUN": self.run}

    def orrery(self, *words):
        return nodes.run(*self.words(*words), env=self.environment())

    def begin(self, *words):
        """Starts the command without waiting for it."""
        return subprocess.Popen(self.words(*words), env=self.environment(), stdin=subprocess.DEVNULL, stdout=sys.stderr)

    def sockets(self):
        return [f"{self.run}/vm/{SITE}/{number}" for number in self.names]

    def own(self, number):
        """Returns the directory of a node's private layer."""
        return f"{self.state}/sites/{SITE}/nodes/{number}/private/upper"

    def told(self, number):
        """Returns the files of a node's /etc/orrery: texts by name."""
        found = {}
        for name in os.listdir(at := f"{self.run}/sites/{SITE}/{number}"):
            if os.path.isfile(f"{at}/{name}"):
                with open(f"{at}/{name}") as text:
                    found[name] = text.read()
        return found

    def processes(self, number):
        return pids(f"orrery/{SITE}/{number}")

    def qemu(self, number):
        return next(pid for pid in self.processes(number) if is_qemu(pid))


def write(directory, count, memory, role="", files={}, engine="kvm", node="", keys=""):
    """Writes the site directory: count equal nodes, each with a role that has these files, and more keys for the nodes and the site."""
    os.makedirs(f"{directory}/roles/bench", exist_ok=True)
    for name, content in {"role.toml": role.encode(), **files}.items():
        with open(f"{directory}/roles/bench/{name}", "wb") as file:
            file.write(content)
    with open(f"{directory}/site.toml", "w") as file:
        file.write(f"""\
[site]
name = "{SITE}"
[network.lan]
subnet  = "{SUBNET}.0/24"
gateway = "{SUBNET}.254"
[image.base]
import = "{BASE}"
[node."n{{001..{count:03}}}"]
id = 1
engine = "{engine}"
memory = "{memory}"
{node}
{'roles = ["bench"]' if role else ""}
{keys}
""")


def address(number):
    return f"{SUBNET}.{number}"


def live_bridge():
    links = json.loads(nodes.run("ip", "-json", "link"))
    return next(link["ifname"] for link in links if link.get("ifalias", "").startswith(f"orrery {SITE} lan "))


def pids(group):
    for tree in "/sys/fs/cgroup/freezer", "/sys/fs/cgroup":  # v1, v2
        for file in glob.glob(f"{tree}/{group}/cgroup.procs"):
            with open(file) as text:
                return [int(pid) for pid in text.read().split()]
    return []


def argv(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        return file.read().split("\0")[:-1]


def is_qemu(pid):
    return os.path.basename(argv(pid)[0]).startswith("qemu-system")


def record(site, file):
    """Records the command lines of running machines, and the trees of their roots."""
    kept = {}
    for number, name in site.names.items():
        # virtiofsd has a child process with the same command line.
        share, qemu = (next(argv(pid) for pid in sorted(site.processes(number)) if is_qemu(pid) == which) for which in (False, True))
        with open(f"{site.state}/sites/{SITE}/nodes/{number}/node.json") as text:
            digests = layers(json.load(text))
        kept[name] = {"virtiofsd": share, "qemu": qemu, "lower": digests[::-1], "told": site.told(number)}
    with open(f"{file}.new", "w") as text:
        json.dump({"state": site.state, "machines": kept}, text, indent=1)
    os.rename(f"{file}.new", file)


def layers(record):
    """Returns the digests of the layers of a node without roles: its base and its kernel."""
    found = []
    def look(value):
        if isinstance(value, dict):
            for item in value.values():
                look(item)
        elif isinstance(value, list):
            for item in value:
                look(item)
        elif isinstance(value, str) and value and os.path.isdir(f"{CACHE}/state/store/{value}/tree") and value not in found:
            found.append(value)
    look(record)
    return found


class Hand:
    """Machines with Orrery's command lines, started by a shell script with plain commands. Beside a site, they have another subnet."""

    def __init__(self, work, recorded, subnet=SUBNET, files={}):
        self.work, self.subnet = f"{work}/hand", subnet
        with open(recorded) as file:
            kept = json.load(file)
        make_bridge(subnet)
        self.names = list(kept["machines"])
        for number, name in enumerate(self.names, 1):
            machine, at = kept["machines"][name], self.directory(name)
            keys = f"{at}/seed/etc/ssh"  # without host keys, systemd starts sshd again and again
            told = {f"etc/orrery/{name}": text.replace(f"{SUBNET}.", f"{subnet}.") for name, text in machine["told"].items()}
            plant(f"{at}/seed", {"etc/hostname": f"{name}\n", "etc/machine-id": f"{number:032x}\n", **told, **files})
            os.mkdir(keys)
            nodes.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{keys}/ssh_host_ed25519_key")
            here = lambda word: word.replace(kept["state"], f"{CACHE}/state")
            files = {"tap": f"hand{number}", "bridge": BRIDGE, "lower": ":".join(f"{CACHE}/state/store/{digest}/tree" for digest in machine["lower"]),
                     "virtiofsd": "\n".join(share(machine["virtiofsd"], at)), "qemu": "\n".join(qemu(map(here, machine["qemu"]), at, f"hand{number}"))}
            for path, text in files.items():
                with open(f"{at}/{path}", "w") as file:
                    file.write(text + "\n")

    def directory(self, name):
        return f"{self.work}/{name}"

    def sockets(self):
        return [self.directory(name) for name in self.names]

    def begin(self):
        return subprocess.Popen([f"{HERE}/by-hand", *self.sockets()], stdin=subprocess.DEVNULL, stdout=sys.stderr)

    def processes(self, name):
        with open(f"{self.directory(name)}/pids") as file:
            first = [int(pid) for pid in file.read().split()]
        return first + [child for child in map(int, filter(str.isdigit, os.listdir("/proc"))) if parent(child) in first]


def plant(tree, files):
    """Writes files below a directory, readable for all users; a service is enabled at boot."""
    os.makedirs(tree)
    for path, text in files.items():
        os.makedirs(os.path.dirname(f"{tree}/{path}"), mode=0o755, exist_ok=True)
        with open(f"{tree}/{path}", "w") as file:
            file.write(text)
        if path.endswith(".service"):
            os.makedirs(wanted := f"{os.path.dirname(f'{tree}/{path}')}/multi-user.target.wants")
            os.symlink(f"/{path}", f"{wanted}/{os.path.basename(path)}")
    os.chmod(tree, 0o755)


class Conversation:
    """A TCP connection to a machine that stays open: the machine echoes each line."""

    def __init__(self, address):
        self.longest, self.broken = 0, ""
        until(lambda: self.connected(address), PATIENCE)
        threading.Thread(target=self.talk, daemon=True).start()

    def connected(self, address):
        try:
            self.connection = socket.create_connection((address, PARROT_PORT), timeout=60)
            self.connection.sendall(b"begin\n")
            return self.connection.recv(6) == b"begin\n"
        except OSError:
            time.sleep(1)

    def talk(self):
        try:
            answers = self.connection.makefile("rb")
            for number in itertools.count():
                begun, line = time.monotonic(), f"{number}\n".encode()
                self.connection.sendall(line)
                if answers.readline() != line:
                    raise OSError("the echoed data differs")
                self.longest = max(self.longest, time.monotonic() - begun)
                time.sleep(0.05)
        except OSError as error:
            self.broken = str(error)

    def pause(self):
        """Returns the longest time without an answer since the last call."""
        time.sleep(0.5)
        longest, self.longest = self.longest, 0
        if self.broken:
            raise SystemExit(f"the TCP connection broke: {self.broken}")
        return longest


class Monitor:
    """A connection to QEMU's monitor socket."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(path)
        self.lines = self.connection.makefile("rw")
        self.lines.readline()
        self.events = []
        self.do("qmp_capabilities")

    def do(self, command, **arguments):
        self.lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.lines.flush()
        while True:
            said = json.loads(self.lines.readline())
            if "error" in said:
                raise SystemExit(f"{command}: {said['error']['desc']}")
            if "return" in said:
                return said["return"]
            self.events.append(said)

    def migrated(self):
        """Waits until a migration has completed, as its events say."""
        while not any(event["event"] == "MIGRATION" and event["data"]["status"] in ("completed", "failed") for event in self.events):
            self.events.append(json.loads(self.lines.readline()))
        while (said := self.do("query-migrate"))["status"] not in ("completed", "failed"):
            time.sleep(0.01)
        if said["status"] == "failed":
            raise SystemExit(f"migration by hand failed: {said}")
        return said


def moves_by_hand(hand, name):
    """A generator that migrates a machine to another QEMU with another virtiofsd on the same root at each step; yields QEMU's figures."""
    running, at = hand.processes(name)[1], hand.directory(name)  # QEMU, not virtiofsd, which has its own mount namespace
    commands = {}
    for which in "virtiofsd", "qemu":
        with open(f"{at}/{which}") as file:
            commands[which] = file.read().split("\n")[:-1]
    from_monitor = f"{at}/monitor.sock"
    for hop in itertools.count(1):
        to, tap = f"{at}/hop{hop}", f"hop{hop}"
        os.mkdir(to)
        nodes.run("ip", "tuntap", "add", tap, "mode", "tap")
        nodes.run("ip", "link", "set", tap, "master", BRIDGE, "up")
        # All sockets are in a directory of this hop; the root, its overlay and the mount namespace stay the same.
        here = lambda word: re.sub(r"ifname=\w+", f"ifname={tap}", re.sub(rf"{re.escape(at)}/(\w+\.(sock|log))", rf"{to}/\1", word))
        within = ["nsenter", f"--target={running}", "--mount", "--"]
        begin = lambda words: subprocess.Popen([*within, *words], stdin=subprocess.DEVNULL, stdout=sys.stderr).pid
        begin(map(here, commands["virtiofsd"]))
        until(lambda: os.path.exists(f"{to}/share.sock"))
        running = begin([*map(here, commands["qemu"]), "-incoming", f"unix:{to}/state.sock"])
        until(lambda: os.path.exists(f"{to}/state.sock") and os.path.exists(f"{to}/monitor.sock"))
        leaving = Monitor(from_monitor)
        leaving.do("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
        leaving.do("migrate", uri=f"unix:{to}/state.sock")
        said = leaving.migrated()
        from_monitor = f"{to}/monitor.sock"
        until(lambda: Monitor(from_monitor).do("query-status")["status"] == "running")
        leaving.do("quit")
        yield {"downtime": said["downtime"] / 1000, "seconds": said["total-time"] / 1000, "bytes": said["ram"]["transferred"]}


def until(so, patience=120):
    deadline = time.monotonic() + patience
    while not so():
        if time.monotonic() > deadline:
            raise SystemExit(f"the condition did not hold within {patience} s")
        time.sleep(0.005)


def make_bridge(subnet=SUBNET):
    """Creates the bridge with plain commands."""
    nodes.run("ip", "link", "add", BRIDGE, "type", "bridge")
    nodes.run("ip", "address", "add", f"{subnet}.254/24", "dev", BRIDGE)
    nodes.run("ip", "link", "set", BRIDGE, "up")


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0


def share(words, at):
    """Returns virtiofsd's command line with paths in place of the descriptors that Orrery passes."""
    return [re.sub(r"source=[^,]*", f"source={at}/root", f"--socket-path={at}/share.sock" if word == "--fd=3" else re.sub(r"^--shared-dir=.*", f"--shared-dir={at}/root", word))
            for word in words]


def qemu(words, at, tap):
    """Returns QEMU's command line with paths and names in place of the descriptors that Orrery passes."""
    here, words = [], list(words)
    while words:
        word = words.pop(0)
        if word == "-add-fd":
            words.pop(0)
            continue
        word = re.sub(r"logfile=/dev/fdset/\d+", f"logfile={at}/console.log", word)
        word = re.sub(r"^socket,id=([^,]+),fd=\d+", lambda found: f"socket,id={found[1]},path={at}/{found[1]}.sock", word)
        word = re.sub(r"^tap,id=([^,]+),fds?=[\d:]+", lambda found: f"tap,id={found[1]},ifname={tap},script=no,downscript=no", word)
        if re.search(r"\bfds?=\d", word):
            raise SystemExit(f"a file descriptor cannot be passed to QEMU by hand: {word}")
        here.append(word)
    return here


def cloud(work, disk, recorded):
    """Starts a machine with the same processor, memory and network card as Orrery's, which boots a disk like that of a cloud image: with udev, and cloud-init that configures it. It has less
    to do than such an image: QEMU loads its kernel, so there is no firmware, boot loader or initramfs."""
    with open(recorded) as file:
        words = next(iter(json.load(file)["machines"].values()))["qemu"]
    make_bridge()
    nodes.run("ip", "tuntap", "add", "hand1", "mode", "tap")
    nodes.run("ip", "link", "set", "hand1", "master", BRIDGE, "up")
    nodes.run("cp", "--sparse=always", "--reflink=auto", disk, f"{work}/disk")
    option = lambda name: [name, words[words.index(name) + 1]]
    command = [words[0], "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35,usb=off,vmport=off", *option("-accel"), *option("-cpu"), *option("-smp"), *option("-m"),
               "-kernel", f"{disk}.vmlinuz", "-append", "root=/dev/nvme0n1 rw console=ttyS0 quiet net.ifnames=0", "-serial", f"file:{work}/console.log",
               "-drive", f"if=none,id=root,file={work}/disk,format=raw,cache=none", "-device", "nvme,drive=root,serial=root",
               "-netdev", "tap,id=net0,ifname=hand1,script=no,downscript=no", "-device", "virtio-net-pci,netdev=net0,romfile=", "-device", "virtio-rng-pci"]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def build(**roles):
    """Builds the layers of a machine and, with roles, of nodes that have these packages; returns the digests by title."""
    for role, packages in roles.items():
        os.makedirs(f"{CACHE}/site/roles/{role}", exist_ok=True)
        with open(f"{CACHE}/site/roles/{role}/role.toml", "w") as file:
            file.write(f"apt = {json.dumps(packages)}\n")
    return build_site(keys="".join(f'[node.{role}]\nid = {9000 + i}\nroles = ["{role}"]\n' for i, role in enumerate(roles)))


def build_site(**declared):
    directory = f"{CACHE}/site"
    write(directory, 1, "256MiB", **declared)
    built = nodes.run(ORRERY, "-C", directory, "image", "build", env={**os.environ, "ORRERY_STATE": f"{CACHE}/state", "ORRERY_RUN": f"{CACHE}/run"})
    return dict(reversed(line.split("  ", 1)) for line in built.splitlines() if "  base" in line)


def make_cloud(disk, digests):
    """Creates the disk of cloud, with a seed from which cloud-init learns the machine's name and addresses."""
    tree = lambda title: f"{CACHE}/state/store/{digests[title]}/tree"
    seed = f"{CACHE}/cloud"
    shutil.rmtree(seed, ignore_errors=True)
    nodes.make_seed(seed)
    os.makedirs(f"{seed}/var/lib/cloud/seed/nocloud")
    wanted = f"{seed}/etc/systemd/system/multi-user.target.wants"
    os.makedirs(wanted)
    os.symlink("/lib/systemd/system/systemd-networkd.service", f"{wanted}/systemd-networkd.service")
    network = {"version": 2, "ethernets": {"eth0": {"addresses": [f"{address(1)}/24"], "gateway4": f"{SUBNET}.254"}}}
    for name, text in ("meta-data", "instance-id: bench\nlocal-hostname: cloud\n"), ("user-data", "#cloud-config\n{}\n"), ("network-config", json.dumps(network)):
        with open(f"{seed}/var/lib/cloud/seed/nocloud/{name}", "w") as file:
            file.write(text)
    shutil.copy(glob.glob(f"{tree('base (kernel)')}/boot/vmlinuz-*")[0], f"{disk}.vmlinuz")
    # In a mount namespace, so that nothing is copied and nothing stays mounted.
    script = 'mount -t overlay overlay -o ro,lowerdir="$1" /mnt && mke2fs -q -F -t ext4 -L root -E assume_storage_prezeroed=1 -d /mnt "$2" 4G'
    nodes.run("unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", f"{seed}:{tree('base + cloud')}:{tree('base (kernel)')}:{tree('base')}", f"{disk}.new")
    os.rename(f"{disk}.new", disk)


def await_agents(directories, begun=None):
    """Yields when each agent has answered, by the clock and by the processor time of the sandbox. If begun, the process that starts the machines, fails, it stops waiting."""
    process = subprocess.Popen([f"{CACHE}/await", *directories], stdout=subprocess.PIPE, text=True)
    if begun:
        threading.Thread(target=lambda: begun.wait() and process.kill(), daemon=True).start()
    for line in process.stdout:
        yield line.strip(), time.monotonic(), sandbox_seconds()
    if process.wait():
        raise SystemExit("await failed")


def await_ssh(address, patience=PATIENCE):
    """Waits until sshd sends its greeting. Each connection costs the machine a process, so there is one at a time, with a long timeout."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((address, 22), timeout=60) as connection:
                if connection.recv(8) == b"SSH-2.0-":
                    return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"sshd at {address} not ready after {patience} s")


def sandbox_seconds():
    """Returns the processor seconds of everything that has run in this sandbox, including ended processes."""
    for path, scale in ("/sys/fs/cgroup/cpuacct/cpuacct.usage", 1e9), ("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", 1e9):
        if os.path.exists(path):
            with open(path) as file:
                return int(file.read()) / scale
    with open("/sys/fs/cgroup/cpu.stat") as file:
        return int(file.read().split()[1]) / 1e6


def seconds(processes):
    """Returns the processor seconds of processes."""
    total = 0
    for pid in processes:
        with open(f"/proc/{pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        total += int(words[11]) + int(words[12])
    return total / os.sysconf("SC_CLK_TCK")


def memory(processes):
    """Returns the proportional set sizes of QEMU and of virtiofsd, in bytes."""
    sizes = {True: 0, False: 0}
    for pid in processes:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            sizes[is_qemu(pid)] += 1024 * int(re.search(r"^Pss: +(\d+)", file.read(), re.MULTILINE)[1])
    return sizes[True], sizes[False]


def available():
    with open("/proc/meminfo") as file:
        return 1024 * int(re.search(r"^MemAvailable: +(\d+)", file.read(), re.MULTILINE)[1])


def programs():
    """Returns the number of running processes of Orrery."""
    program = os.path.realpath(ORRERY)
    return sum(os.path.realpath(link) == program for link in glob.glob("/proc/[0-9]*/exe"))


def allocated(tree):
    paths = (os.path.join(top, name) for top, dirs, files in os.walk(tree) for name in dirs + files)
    return 512 * sum(os.lstat(path).st_blocks for path in paths)
