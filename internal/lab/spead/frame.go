package spead

import (
	"encoding/binary"
	"fmt"
)

// The items of the heaps that a Sender sends: the number of the heap in the stream, and bytes.
const (
	idTime = 0x1600
	idData = 0x1000
)

// A frame holds the packets of some heaps in contiguous memory, so that one address is enough to
// pass many packets to the kernel. Heaps differ only in their ID and their time, which replace
// those of the previous heaps.
type frame struct {
	memory []byte
	heaps  int   // number of heaps in the frame
	sizes  []int // sizes of the packets of a heap
	ids    []int // offsets of the pointers with the heap's ID in the memory of a heap
	time   int   // offset of the pointer with the time
	all    []piece
}

// minFrameBytes is the minimum size of a frame in bytes: enough for a few full messages.
const minFrameBytes = 4 * coalescedBytes

// newFrame creates a frame with as many heaps as fit. Extra items come before the data.
func newFrame(heapBytes, packetBytes int, extra []Item) *frame {
	data := make([]byte, heapBytes)
	for i := range data {
		data[i] = byte(i ^ i>>8 ^ i>>16)
	}
	items := append(extra, Item{ID: idTime, Immediate: true}, Item{ID: idData, Data: data})
	f := &frame{}
	size := 0
	for _, p := range encode(0, items, packetBytes) {
		f.sizes = append(f.sizes, len(p))
		f.ids = append(f.ids, size+headerBytes)
		size += len(p)
		f.memory = append(f.memory, p...)
	}
	f.time = f.find(immediate(idTime, 0))
	f.heaps = max(1, (minFrameBytes+size-1)/size)
	if len(extra) > 0 {
		f.heaps = 1
	}
	one := f.memory
	for len(f.memory) < f.heaps*size {
		f.memory = append(f.memory, one...)
	}
	return f
}

// find returns the offset of a pointer in the first heap of a frame.
func (f *frame) find(pointer uint64) int {
	at := 0
	for _, size := range f.sizes {
		count := int(binary.BigEndian.Uint16(f.memory[at+6:]))
		for i := range count {
			if w := at + headerBytes + i*pointerBytes; binary.BigEndian.Uint64(f.memory[w:]) == pointer {
				return w
			}
		}
		at += size
	}
	panic(fmt.Sprintf("no pointer %#x in the frame", pointer)) // newFrame has written it
}

// heap returns the size of one heap in memory, in bytes.
func (f *frame) heap() int { return len(f.memory) / f.heaps }

// number writes the IDs of the heaps of the frame: id, id+step, …
func (f *frame) number(id, step uint64) {
	size := f.heap()
	for h := range f.heaps {
		at := f.memory[h*size : (h+1)*size]
		for _, i := range f.ids {
			put(at[i:], immediate(idHeap, id))
		}
		put(at[f.time:], immediate(idTime, id))
		id += step
	}
}

// A piece is a range of packets that are sent together: as one message if the kernel segments it
// (UDP_SEGMENT), or else as one message per packet.
type piece struct {
	begin, end int // offsets in the memory of the frame
	packets    []int
	heaps      int // number of heaps that end in the piece
}

// pieces returns the pieces of the first heaps of the frame. All packets of a piece except the last
// have the full size, so that the kernel can segment it.
func (f *frame) pieces(heaps, full int) []piece {
	if heaps < f.heaps {
		return f.divide(heaps, full, maxPacketBytes, maxSegments)
	}
	if f.all == nil {
		f.all = f.divide(heaps, full, maxPacketBytes, maxSegments)
	}
	return f.all
}

// divide creates pieces of at most limit bytes and count packets.
func (f *frame) divide(heaps, full, limit, count int) []piece {
	var all []piece
	var now piece
	at := 0
	flush := func() {
		if now.end > now.begin {
			all = append(all, now)
		}
		now = piece{begin: at, end: at}
	}
	for range heaps {
		for i, size := range f.sizes {
			if now.end+size-now.begin > limit || len(now.packets) == count {
				flush()
			}
			at += size
			now.end = at
			now.packets = append(now.packets, size)
			if i == len(f.sizes)-1 {
				now.heaps++
			}
			if size != full {
				flush()
			}
		}
	}
	flush()
	return all
}
