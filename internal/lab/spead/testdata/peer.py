"""receive|send ADDRESS PORT: the other end of the interoperation tests, by spead2."""

import sys

import numpy as np
import spead2
import spead2.recv
import spead2.send


def receive(address, port):
    # All heaps fit, so that the thread that reads the socket never waits for the check of a heap.
    ring = spead2.recv.RingStreamConfig(heaps=64)
    stream = spead2.recv.Stream(spead2.ThreadPool(), ring_config=ring)
    stream.add_udp_reader(port, bind_hostname=address, buffer_size=8 << 20)
    print("listening", flush=True)
    items = spead2.ItemGroup()
    heaps = 0
    for heap in stream:
        items.update(heap)
        heaps += 1
        data = items["data"].value
        index = np.arange(len(data))
        assert data.dtype == np.uint8 and np.array_equal(data, (index ^ index >> 8 ^ index >> 16) & 255), f"heap {heaps}: {data}"
        assert items["timestamp"].value == heaps, f"heap {heaps}: {items['timestamp'].value}"
    print(heaps, "heaps are right")


def send(address, port):
    config = spead2.send.StreamConfig(max_packet_size=1500 - 28, rate=50e6)
    stream = spead2.send.UdpStream(spead2.ThreadPool(), [(address, port)], config)
    items = spead2.send.ItemGroup(flavour=spead2.Flavour(4, 64, 48))
    items.add_item(0x1000, "visibilities", "numbers", shape=(50000,), dtype=">u4")
    items.add_item(0x1001, "timestamp", "a number of 48 bits", shape=(), format=[("u", 48)])
    items.add_item(0x1002, "antenna", "text", shape=(None,), format=[("c", 8)])
    for heap in range(1, 11):
        items["visibilities"].value = np.arange(100 * heap, 100 * heap + 50000, dtype=">u4")
        items["timestamp"].value = (1 << 40) + heap
        items["antenna"].value = "receptor"
        stream.send_heap(items.get_heap(data="all"))
    stream.send_heap(items.get_end())


{"receive": receive, "send": send}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
