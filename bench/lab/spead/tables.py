"""Tables of the SPEAD benchmark: medians, spread, and whether the goals are reached."""

import statistics

import report


def tables(lines):
    machine = lines[0]
    text = (f"Orrery {machine['orrery']}, {machine['date']}: {machine['cpus']} × {machine['model']}, {machine['memory_gib']} GiB, "
            f"Linux {machine['kernel']}, load at the start {machine['load']:.1f}.\n")
    text += "".join(f"\nFailed: {line['part']}: {line['failed']}\n" for line in lines if "failed" in line)
    for part, title, make in (("receivers", "Lossless rate of receivers, one sender", receivers), ("accuracy", "The sender's accuracy", accuracy),
                              ("searches", "Searches from the same start", searches),
                              ("planted", "Searches from the same start, with a loss above 2.1 Gbit/s that was planted", searches)):
        if own := [line for line in lines if line["part"] == part and "failed" not in line]:
            text += f"\n## {title}\n\n{make(own)}\n"
    return text


def spread(values):
    """Median absolute deviation from the median, as a part of it."""
    middle = statistics.median(values)
    return statistics.median(abs(v - middle) for v in values) / middle


def receivers(lines):
    kept = [line for line in lines if line["round"] > 0]  # the first only finds where to begin
    rounds = sorted({line["round"] for line in kept})
    rates = {(line["receiver"], line["round"]): line["rate"] for line in kept}
    rows = []
    for name in dict.fromkeys(line["receiver"] for line in kept):
        own = [rates[name, r] for r in rounds if (name, r) in rates]
        ratios = [rates[name, r] / rates["spead2", r] for r in rounds if (name, r) in rates and ("spead2", r) in rates]
        capped = sum(line["capped"] for line in kept if line["receiver"] == name)
        rows.append([name, str(len(own)), gbit(statistics.median(own)), f"{gbit(min(own))} to {gbit(max(own))}", percent(spread(own)),
                     f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "", str(capped)])
    return report.table(["receiver", "rounds", "median", "range", "spread", "/ spead2, of each round", "bounded by the sender"], rows) + \
        "\nGoal: at least 0.9 of spead2.\n"


def accuracy(lines):
    rows = []
    for rate in sorted({line["asked"] for line in lines}):
        off = [line["achieved"] / rate - 1 for line in lines if line["asked"] == rate]
        rows.append([gbit(rate), str(len(off)), percent(statistics.median(off)), percent(max(off, key=abs)), str(sum(abs(o) > 0.01 for o in off))])
    return report.table(["asked", "trials", "off: median", "off: worst", "off by more than 1 %"], rows) + "\nGoal: within 1 %.\n"


def searches(lines):
    rows = []
    for of in sorted({line["of"] for line in lines}):
        trials, name = {}, f"{of:g} × lossless" if of else "goodput of a blast"
        for way in "mlr", "step down":
            own = [line for line in lines if (line["way"], line["of"]) == (way, of)]
            if not own:
                continue
            rates = [line["rate"] for line in own]
            trials[way] = statistics.median(line["trials"] for line in own)
            part = percent(trials["mlr"] / trials[way]) if way == "step down" and "mlr" in trials else ""
            rows.append([name, way, str(len(own)), f"{trials[way]:.0f}", f"{min(l['trials'] for l in own)} to {max(l['trials'] for l in own)}", part,
                         gbit(statistics.median(rates)), percent(spread(rates)), f"{gbit(min(rates))} to {gbit(max(rates))}"])
    return report.table(["start", "search", "runs", "trials: median", "trials: range", "mlr's trials of these", "rate: median", "rate: spread", "rate: range"],
                        rows) + "\nGoal: at most 60 % of the trials, with no larger spread.\n"


def gbit(rate):
    return f"{rate / 1e9:.3g} Gbit/s"


def percent(part):
    return f"{100 * part:.2f} %"
