"""Tables of virtual machines. Where the host emulates their processors, each table says so: then only ratios of one run are meaningful, and processor seconds more so than time."""

import statistics

import report


def tables(lines):
    machine = next(line for line in lines if line["part"] == "machine")
    text = (f"Orrery {machine['orrery']}, {machine['date']}: {machine['cpus']} × {machine['model']}, {machine['memory_gib']} GiB, "
            f"Linux {machine['kernel']}, load at the start {machine['load']:.1f}.\n")
    text += "".join(f"\nFailed: {line['part']} {line.get('peer', '')} in round {line['round']}: {line['failed']}\n" for line in lines if "failed" in line)
    for part, (title, rows) in PARTS.items():
        r = report.Results([line for line in lines if line["part"] == part])
        if r.lines:
            emulated = " (emulated)" if any(line.get("emulated") for line in r.lines) else ""
            loads = [line["load"] for line in r.lines if "load" in line]
            beside = f"Load {min(loads)} to {max(loads)}.\n\n" if loads else ""
            text += f"\n## {title}{emulated}\n\n{beside}{report.table(*rows(r))}"
    return text


def mib(series):
    return report.spread(series, "{:.1f} MiB", 1 / 2**20)


def boot(r):
    """Compares Orrery with the same command lines in a script: wall-clock time and processor time until the last agent has answered."""
    rows = []
    for what, value in ("time", "seconds"), ("processor time of all", "cpu_seconds"):
        ours, theirs = (r.series(r.lines[0]["part"], peer, value) for peer in ("orrery", "hand"))
        rows.append([what, report.spread(ours), report.spread(theirs), report.ratio(ours, theirs)])
    return ["from warm layers until the last agent has answered", "Orrery", "by hand", "Orrery / by hand"], rows


def own(r):
    line = r.lines[-1]
    return ["own files", "its directory", "written to the store"], [[mib({0: line["own_bytes"]}), mib({0: line["node_bytes"]}), f"{line['store_bytes']} bytes"]]


def cloud(r):
    agent, ssh, disk = (r.series("cloud", *which) for which in (("orrery", "agent_cpu_seconds"), ("orrery", "ssh_cpu_seconds"), ("cloud", "ssh_cpu_seconds")))
    return (["processor time of QEMU and virtiofsd", "Orrery, to its agent", "Orrery, to sshd", "a disk as of cloud images, to sshd", "agent / disk", "sshd / disk"],
            [["", report.spread(agent), report.spread(ssh), report.spread(disk), report.ratio(agent, disk), report.ratio(ssh, disk)]])


def idle(r):
    rows = []
    for peer, name in ("orrery", "Orrery"), ("hand", "by hand"):
        share = [report.spread(r.series("idle", peer, value), "{:.2f} %", 100) for value in ("qemu_share", "virtiofsd_share")]
        rows.append([name, *share, *(mib(r.series("idle", peer, value)) for value in ("qemu_bytes", "virtiofsd_bytes")), str(max(r.series("idle", peer, "others").values(), default=""))])
    return ["idle machine", "QEMU, of a processor", "virtiofsd", "QEMU, memory (PSS)", "virtiofsd", "processes of Orrery"], rows


def many(r):
    rows = []
    for n in sorted({line["n"] for line in r.lines}):
        memory = next(line["memory"] for line in r.lines if line["n"] == n)
        for what, title, prefix in ("answers", "the last agent answers", ""), ("up", "`orrery up` returns", "up_"):
            of = lambda value: r.series("many", None, value, n=n, what=what)
            if time := of(f"{prefix}seconds"):
                failed = ", not all healthy" if what == "up" and any(of("up_status").values()) else ""
                rows.append([f"{n} × {memory}", title + failed, report.spread(time), report.spread(of(f"{prefix}cpu_seconds")),
                             *(mib(of(value)) for value in ("qemu_bytes", "virtiofsd_bytes", "all_bytes", "taken_bytes"))])
    return ["at once", "until", "time", "processor time", "PSS of each QEMU", "of each virtiofsd", "of all together", "of the host's memory"], rows


def switch(r):
    rows = []
    for engine, name in ("kvm", "virtual machines"), ("lxc", "containers"):
        mine = [line for line in r.lines if line["peer"] == engine]
        for way in "ping", "udp", "tcp":
            of = lambda *what: [line[way] for line in mine if line["what"] in what]
            if of("switch"):
                rows.append([f"{mine[0]['n']} {name}, {way}", str(len(of("switch", "rollback"))), ms(statistics.median(of("switch", "rollback"))), ms(max(of("switch", "rollback"))),
                             ms(max(of("nothing")))])
    return ["longest time without an answer of any node", "switches and rollbacks", "median", "worst", "nothing done: worst"], rows


def disks(r):
    kinds = {"virtiofs": "files of the host, by virtiofs", "qcow2": "on a disk, qcow2", "raw": "on a disk, raw"}
    rows = []
    for kind, name in kinds.items():
        of = lambda value, form, scale=1: report.spread(r.series("disks", kind, value), form, scale)
        if r.series("disks", kind, "apt_seconds"):
            rates = [of(f"{job} bytes", "{:.1f} MB/s", 1e-6) for job in ("sequential write", "sequential read")] + [
                of(f"{job} bytes", "{:.0f} 1/s", 1 / 4096) for job in ("random write", "random read")]
            rows.append([name, *rates, of("apt_seconds", "{:.1f} s"), of("apt_cpu_seconds", "{:.1f} s"), of("agent_cpu_seconds", "{:.1f} s"), of("up_cpu_seconds", "{:.1f} s"),
                         of("qemu_bytes", "{:.0f} MiB", 1 / 2**20), of("virtiofsd_bytes", "{:.0f} MiB", 1 / 2**20)])
    return ["what a machine writes is in", "sequential write", "sequential read", "random write, 4 KiB", "random read, 4 KiB", "apt install", "its processor time", "processor time to the agent",
            "until it is up", "QEMU, memory (PSS)", "virtiofsd"], rows


def migrate(r):
    series = lambda peer, value: {line["hop"]: line[value] for line in r.lines if line["peer"] == peer}
    rows, downtime = [], {peer: series(peer, "downtime") for peer in ("orrery", "hand")}
    for peer, name in ("orrery", "`orrery renew`"), ("hand", "by hand"):
        if downtime[peer]:
            of = lambda value: report.spread(series(peer, value), "{:.0f} ms", 1000)
            rows.append([name, str(len(downtime[peer])), of("downtime"), of("seconds"), of("pause"), report.spread(series(peer, "command_seconds")), report.spread(series(peer, "cpu_seconds"))])
    if all(downtime.values()):
        middle = {peer: statistics.median(values.values()) for peer, values in downtime.items()}
        rows.append(["Orrery / by hand, of medians", "", f"{middle['orrery'] / middle['hand']:.2f}", *[""] * 4])
        rows.append(["of pairs", "", report.ratio(downtime["orrery"], downtime["hand"]), *[""] * 4])
    return ["a machine goes over into another QEMU", "times", "downtime as QEMU tells it", "altogether", "a TCP connection waits at most", "the command, or the script", "processor time of all"], rows


def ms(seconds):
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


PARTS = {
    "boot8": ("Eight machines", boot), "kernel": ("One machine", boot), "own": ("What a machine has of its own", own), "cloud": ("Beside a disk as of cloud images", cloud),
    "idle": ("A machine that does nothing", idle), "many": ("Many at once", many), "disks": ("On files of the host, and on disks", disks), "migrate": ("Live migration on one host", migrate),
    "switch8": ("The outage of a warm switch of eight", switch),
}
