#!/usr/bin/env python3
"""ratios.py samples.csv: how each of the lab's figures differs from the one read by hand, place by place: the median of the rounds' ratios, and the range of its 95 % by sign test."""
import csv, collections, math, statistics, sys

PAIRS = [  # test and figure of the lab, those by hand, and what the latter is where they are not the same
    (("cpu", "int64"), ("hand-cpu", "int64"), None),
    (("cpu", "matrixprod"), ("hand-cpu", "matrixprod"), None),
    (("micro", "simple syscall"), ("hand-micro", "syscall"), None),
    (("micro", "pipe latency"), ("hand-micro", "pipe"), None),
    (("net", "tcp forward 1 stream"), ("hand-forward", "tcp"), None),
    (("net", "tcp reverse 1 stream"), ("hand-reverse", "tcp"), None),
    (("net", "rtt median"), ("hand-rtt", "median"), None),
    (("disk", "randread 4k 1 thread"), ("hand-disk", "randread"), None),
    (("disk", "read 1M"), ("hand-disk", "read"), None),
    (("mpi", "pingpong latency 64 B"), ("hand-mpi", "64 B"), None),
    (("mpi", "pingpong bandwidth 64 KiB"), ("hand-mpi", "64 KiB"), lambda seconds: 65536 / seconds),
]

def median_interval(values):
    """The median of some values and the interval that has it in 95 % (order statistics)."""
    values, n, k = sorted(values), len(values), 0
    while k + 1 < n / 2 and 2 * sum(math.comb(n, i) for i in range(k + 2)) / 2**n <= 0.05:
        k += 1
    return statistics.median(values), values[k], values[n - 1 - k]

by = collections.defaultdict(dict)
with open(sys.argv[1]) as f:
    for row in csv.DictReader(f):
        if row["round"] != "0" and row["value"]:
            by[row["test"], row["figure"], row["setting"]][row["round"]] = float(row["value"])

print(f"{'kind and figure':38} {'place':12} {'lab':>12} {'by hand':>12} {'lab / hand':>10}  95 %")
for lab, hand, convert in PAIRS:
    for place in sorted({p for t, f, p in by if (t, f) == lab}):
        one, other = by[(*lab, place)], by.get((*hand, place), {})
        if convert:
            other = {r: convert(v) for r, v in other.items()}
        rounds = [r for r in one if r in other]
        if not rounds:
            print(f"{lab[0] + ', ' + lab[1]:38} {place:12} nothing by hand")
            continue
        middle, low, high = median_interval([one[r] / other[r] for r in rounds])
        print(f"{lab[0] + ', ' + lab[1]:38} {place:12} {statistics.median(one.values()):12.5g} {statistics.median(other.values()):12.5g} {100 * (middle - 1):+9.1f} %  {100 * (low - 1):+.1f} to {100 * (high - 1):+.1f} %")
