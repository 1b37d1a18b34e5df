"""Tables of results: medians, with minimum and maximum in brackets; ratios compare pairs of the same round."""

import os
import platform
import statistics
import subprocess
import time


def machine(root):
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    version = subprocess.run(["packaging/version"], cwd=root, capture_output=True, text=True).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"orrery": version, "date": time.strftime("%Y-%m-%d"), "cpus": os.cpu_count(), "model": model,
            "memory_gib": round(memory / 2**30), "kernel": platform.release(), "load": os.getloadavg()[0]}


class Results:
    def __init__(self, lines):
        self.lines = [line for line in lines if "failed" not in line]

    def series(self, part, peer, value="seconds", **like):
        """Returns the values of one measurement, by round."""
        return {line["round"]: line[value] for line in self.lines if line["part"] == part and line.get("peer") == peer
                and all(line.get(key) == wanted for key, wanted in like.items())}


def pairs(a, b, combine):
    """Combines two series round by round."""
    return {key: combine(a[key], b[key]) for key in a if key in b}


def ratio(a, b):
    return spread(pairs(a, b, lambda x, y: x / y), "{:.2f}")


def spread(series, form="{:.2f} s", scale=1):
    values = [value * scale for value in series.values()]
    if not values:
        return "–"
    middle, low, high = (form.format(f(values)) for f in (statistics.median, min, max))
    return f"{middle} ({low.split()[0]}–{high.split()[0]})" if len(values) > 1 else middle


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]) + "\n"


def tables(lines):
    r = Results(lines)
    failed = [line for line in lines if "failed" in line]
    m = next(line for line in lines if line["part"] == "machine")
    rounds = max((line.get("round", 0) for line in lines), default=0)
    text = (f"Orrery {m['orrery']}, {m['date']}: {m['cpus']} × {m['model']}, {m['memory_gib']} GiB, Linux {m['kernel']}, load at the "
            f"start {m['load']:.1f}; {rounds} rounds.\n")
    text += "".join(f"\nFailed: {line['part']} of {line['peer']} in round {line['round']}: {line['failed']}\n" for line in failed)
    for title, section in ("Nodes from cached layers", nodes), ("Deleting 32 nodes", deleting), ("32 nodes against 1", scale), \
            ("The same role by others", tools), ("Disk and memory", disk), ("Planning 10,000 nodes on 200 hosts", plan), \
            ("A twin of 32 nodes", twin), ("Starting the program", start), ("Status of 64 nodes", status), ("Beside the program as it was before", before):
        if body := section(r):
            text += f"\n## {title}\n\n{body}"
    return text


def nodes(r):
    rows = []
    for n in 1, 8, 32:
        orrery, floor, lxd, unfitted = (r.series("nodes", peer, n=n) for peer in ("orrery", "floor", "lxd", "lxd-unfitted"))
        seen = r.series("nodes", "orrery", "seen_seconds", n=n)
        if orrery:
            rows.append([str(n), spread(orrery), spread(seen), spread(floor), ratio(orrery, floor), ratio(seen, floor),
                         spread(lxd), ratio(lxd, orrery), spread(unfitted), ratio(unfitted, orrery)])
    return rows and table(["N", "Orrery", "checked again", "floor", "Orrery / floor", "checked again / floor", "LXD, fitted tree",
                           "/ Orrery", "LXD, the tarball as it is", "/ Orrery"], rows)


def deleting(r):
    orrery, floor, lxd = (r.series("nodes", peer, "delete_seconds", n=32) for peer in ("orrery", "floor", "lxd"))
    return orrery and table(["Orrery", "floor", "LXD", "LXD / Orrery"],
                            [[spread(orrery), spread(floor), spread(lxd), ratio(lxd, orrery)]])


def scale(r):
    rows = []
    for role in "gauge", "mpi":
        one, many, build = (r.series("scale", "orrery", value, role=role, n=n)
                            for value, n in (("seconds", 1), ("seconds", 32), ("build_seconds", 1)))
        each = pairs(one, many, lambda a, b: (b - a) / 31)
        bare = pairs(*(r.series("nodes", "orrery", n=n) for n in (1, 32)), lambda a, b: (b - a) / 31)
        alone = pairs(each, bare, lambda a, b: a - b)
        if each:
            share = lambda series: spread(pairs(series, build, lambda a, b: 100 * a / b), "{:.1f} %")
            rows.append([role, spread(build), spread(one), spread(many), spread(each, "{:.3f} s"), share(each),
                         spread(alone, "{:.3f} s"), share(alone)])
    return rows and table(["role", "layer build", "1 node, in all", "32 nodes, in all", "each further node", "share of the build",
                           "less its bare boot", "share of the build"], rows)


def tools(r):
    bare = r.series("tools", "orrery", n=8, role=None)
    orrery = {(layer, before): r.series("tools", "orrery", layer=layer, before=before)
              for layer in ("cold", "warm") for before in ("nothing", "running")}
    if not bare:
        return ""
    rows = []
    for layer in "cold", "warm":
        everything, again = orrery[layer, "nothing"], orrery[layer, "running"]
        alone = pairs(everything, bare, lambda a, b: a - b)
        for what, series in ("from nodes that run without the role", again), ("from nothing", everything), \
                ("from nothing, less the same nodes without the role", alone):
            rows.append([f"Orrery, {layer} layer, {what}", spread(series),
                         *(ratio(r.series("tools", peer), series) for peer in ("ansible", "pyinfra", "fabric"))])
    for peer in "ansible", "pyinfra", "fabric":
        rows.append([peer, spread(r.series("tools", peer)), "", "", ""])
    return table(["8 nodes", "time", "ansible / Orrery", "pyinfra / Orrery", "fabric / Orrery"], rows)


def disk(r):
    series = r.series("nodes", "orrery", "disk_bytes", n=32)
    left = r.series("nodes", "orrery", "processes", n=32)
    return series and table(["disk, each node", "processes of Orrery after `up`"],
                            [[spread(series, "{:.2f} MiB", 1 / 2**20), str(max(left.values()))]])


def twin(r):
    rows = []
    for order, title in ("original", "the original first"), ("twin", "the twin first"):
        up, copy, end, disk = (r.series("twin", "orrery", value, order=order) for value in ("seconds", "twin_seconds", "destroy_seconds", "disk_bytes"))
        if up:
            rows.append([title, spread(up), spread(copy), ratio(copy, up), spread(end), spread(disk, "{:.2f} MiB", 1 / 2**20)])
    return rows and table(["order", "site up", "twin create", "twin / site", "twin destroy", "disk, each node of the twin"], rows)


def plan(r):
    rows = [[line["case"], f"{line['seconds']:.2f} s", f"{line['peak_mib']:.0f} MiB"] for line in r.lines if line["part"] == "plan"]
    return rows and table(["of them up", "time", "memory"], rows)


def start(r):
    series = r.series("start", "orrery")
    return series and table(["time"], [[spread(series, "{:.1f} ms", 1000)]])


def status(r):
    series = [r.series("status", "orrery", value) for value in ("seconds", "cpu_seconds")]
    return series[0] and table(["time", "processor time"], [[spread(each, "{:.0f} ms", 1000) for each in series]])


def before(r):
    """Returns the table of --before: each figure of both programs, and the ratio of the pairs of each round."""
    what = {}
    for line in r.lines:
        if line.get("peer") == "before":
            like = {key: line.get(key) for key in ("n", "role", "layer", "before", "order")}  # missing keys must be missing in both
            for value in line:
                if value.endswith("seconds") and line[value]:  # a warm layer takes 0 s to build
                    what[line["part"], value, *like.items()] = like
    rows = []
    for (part, value, *_), like in what.items():
        now, then = r.series(part, "orrery", value, **like), r.series(part, "before", value, **like)
        title = " ".join([part, *(str(word) for word in like.values() if word is not None)]) + ("" if value == "seconds" else f" ({value.removesuffix('_seconds')})")
        rows.append([title, *(spread(series, "{:.0f} ms", 1000) for series in (now, then)), ratio(now, then)])
    return rows and table(["what", "now", "before", "now / before"], rows)
