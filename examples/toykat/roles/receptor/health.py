"""Exit 0 when the receptor on this node answers and its simulation moves on.

KATCP is lines of text, so this needs no library: it starts at once, also on a node with little cpu.
"""

import socket
import sys
import time

with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=4) as connection:
    connection.sendall(b"?sensor-value[1] pos.actual-azim\n")
    for line in connection.makefile():
        words = line.split()
        if words[0] == "#sensor-value[1]":  # time, count, name, status, value
            age = time.time() - float(words[1])
        if words[0] == "!sensor-value[1]":
            break
    else:
        sys.exit("the receptor closed the connection")
if words[1] != "ok":
    sys.exit(line)
if age > 2:
    sys.exit(f"pos.actual-azim is {age:.1f} s old: the simulation stands still")
