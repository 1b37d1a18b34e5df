#!/usr/bin/python3
"""A token goes round all ranks of an MPI job; each adds its own number. Says whether the sum is right, and how fast it went.

    mpirun -n 8 ring [rounds]
"""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100

hosts = world.gather(MPI.Get_processor_name())
world.Barrier()
start = MPI.Wtime()
token = 0
for _ in range(rounds):
    if rank > 0 or size == 1:
        token = world.recv(source=rank - 1) if size > 1 else token
    token += rank
    if size > 1:
        world.send(token, dest=(rank + 1) % size)
    if rank == 0 and size > 1:
        token = world.recv(source=size - 1)
seconds = MPI.Wtime() - start

if rank == 0:
    expected = rounds * size * (size - 1) // 2
    if token != expected:
        sys.exit(f"the token is {token}, not {expected}")
    print(f"{size} ranks on {len(set(hosts))} nodes, {rounds} rounds: the token is {token}, as it should be;"
          f" {seconds / rounds / size * 1e6:.1f} us from rank to rank")
