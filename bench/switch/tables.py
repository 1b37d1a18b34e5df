"""Tables of outages: median and worst, of switches and of rollbacks."""

import statistics

import report

NAMES = {"orrery": "Orrery", "lxc": "lxc-stop, lxc-start", "lxc-kill": "lxc-stop --kill, lxc-start", "podman": "podman stop, podman start"}


def tables(lines):
    machine = lines[0]
    text = (f"Orrery {machine['orrery']}, {machine['date']}: {machine['cpus']} × {machine['model']}, {machine['memory_gib']} GiB, "
            f"Linux {machine['kernel']}, load at the start {machine['load']:.1f}.\n")
    text += "".join(f"\nFailed: {line['peer']} with {line['n']} nodes: {line['failed']}\n" for line in lines if "failed" in line)
    samples = [line for line in lines if "udp" in line]
    for way, title in ("ping", "ping, which the kernel answers, each ms"), ("udp", "UDP, a request each ms"), ("tcp", "TCP, a connection each 10 ms"):
        loads = sorted({s.get("load", False) for s in samples})
        rows = [row([s for s in samples if s.get("load", False) == load], peer, n, way, load)
                for n in sorted({s["n"] for s in samples}) for peer in NAMES for load in loads]
        text += f"\n## Outage: {title}\n\n" + report.table(
            ["N", "", "switches", "median", "worst", "rollbacks", "median", "worst", "both: median", "worst", "/ Orrery", "nothing done: worst"],
            [cells for cells in rows if cells])
    return text


def row(samples, peer, n, way, load):
    def of(peer, what):
        return [s[way] for s in samples if (s["peer"], s["n"], s["what"]) == (peer, n, what)]
    switches, rollbacks, nothing = (of(peer, what) for what in ("switch", "rollback", "nothing"))
    if not switches or not rollbacks:
        return None
    ours = of("orrery", "switch") + of("orrery", "rollback")
    ratio = statistics.median(switches + rollbacks) / statistics.median(ours) if ours and peer != "orrery" else None
    both = switches + rollbacks
    return [str(n), NAMES[peer] + (", all processors busy" if load else ""), str(len(switches)), ms(statistics.median(switches)), ms(max(switches)), str(len(rollbacks)),
            ms(statistics.median(rollbacks)), ms(max(rollbacks)), ms(statistics.median(both)), ms(max(both)), f"{ratio:.0f}" if ratio else "", ms(max(nothing))]


def ms(seconds):
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
