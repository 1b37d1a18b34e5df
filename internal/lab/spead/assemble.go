package spead

import (
	"encoding/binary"
	"slices"
)

// A Heap is a complete heap. It is valid until the function that received it returns.
type Heap struct {
	ID       uint64
	Payload  []byte
	pointers []uint64
	bits     uint
}

// maxIncompleteHeaps is the maximum number of incomplete heaps of a stream, as in spead2.
const maxIncompleteHeaps = 4

// An assembly builds heaps from packets. It reuses the memory of heaps.
type assembly struct {
	begun   []*partial // incomplete heaps, oldest first
	free    []*partial
	done    [8]uint64 // the last complete heaps, so that a duplicate packet does not start a new heap
	last    int
	whole   func(*Heap)
	Heaps   uint64 // complete heaps
	Partial uint64 // heaps given up because of newer ones, or at the end
	Packets uint64 // packets in complete heaps
	Bytes   uint64 // payload bytes in complete heaps
	Twice   uint64 // duplicate packets
}

// A partial heap has only a part of its payload.
type partial struct {
	Heap
	size    int    // -1 if not known yet
	have    int    // received bytes
	packets uint64 // received packets
	spans   []span // received parts of the payload, in order, not adjacent
}

// A span is a part of the payload from begin up to, but not including, end.
type span struct{ begin, end int }

func newAssembly(whole func(*Heap)) *assembly {
	return &assembly{whole: whole, done: [8]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0),
		^uint64(0), ^uint64(0), ^uint64(0)}}
}

// prepare allocates and touches the memory for the maximum number of incomplete heaps. To touch a
// page for the first time while packets arrive costs as much as several packets.
func (a *assembly) prepare(size int) {
	for range maxIncompleteHeaps {
		h := &partial{}
		h.grow(min(size, maxHeapBytes))
		touch(h.Payload)
		a.free = append(a.free, h)
	}
}

// touch makes the kernel allocate the pages of new memory.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0
	}
}

// add adds a packet.
func (a *assembly) add(p *Packet) {
	h := a.find(p)
	if h == nil || !h.copyPayload(p) {
		a.Twice++
		return
	}
	if h.size >= 0 && h.have == h.size {
		a.finish(h)
	}
}

// find returns the heap of a packet, which is a new one if necessary, or nil if the heap is
// complete already.
func (a *assembly) find(p *Packet) *partial {
	for i := len(a.begun) - 1; i >= 0; i-- {
		if h := a.begun[i]; h.ID == p.Heap {
			return h
		}
	}
	if slices.Contains(a.done[:], p.Heap) {
		return nil
	}
	if len(a.begun) == maxIncompleteHeaps {
		a.giveUp(a.begun[0])
	}
	h := &partial{}
	if n := len(a.free); n > 0 {
		h, a.free = a.free[n-1], a.free[:n-1]
	}
	h.begin(p)
	a.begun = append(a.begun, h)
	return h
}

func (h *partial) begin(p *Packet) {
	h.ID, h.bits, h.size, h.have, h.packets = p.Heap, p.bits, p.Size, 0, 0
	h.spans, h.pointers = h.spans[:0], h.pointers[:0]
	h.grow(max(p.Size, len(p.Payload)+p.Offset))
}

// grow extends the payload to at least n bytes.
func (h *partial) grow(n int) {
	if n > cap(h.Payload) {
		grown := make([]byte, n)
		copy(grown, h.Payload)
		h.Payload = grown
	}
	h.Payload = h.Payload[:n]
}

// copyPayload copies the payload of a packet. It reports whether the payload is new.
func (h *partial) copyPayload(p *Packet) bool {
	end := p.Offset + len(p.Payload)
	if p.Size >= 0 {
		h.size = p.Size
	}
	if h.size >= 0 && end > h.size {
		return false // two packets have different sizes
	}
	if end > len(h.Payload) {
		h.grow(end)
	}
	if len(p.Payload) > 0 && !h.cover(span{p.Offset, end}) {
		return false
	}
	copy(h.Payload[p.Offset:end], p.Payload)
	h.have += len(p.Payload)
	h.packets++
	for i := 0; i < len(p.items); i += pointerBytes {
		h.pointers = append(h.pointers, binary.BigEndian.Uint64(p.items[i:]))
	}
	return true
}

// cover records that a part of the payload arrived. It reports whether no byte of it had arrived
// before.
func (h *partial) cover(s span) bool {
	if n := len(h.spans); n > 0 && h.spans[n-1].end == s.begin { // the usual case: in order
		h.spans[n-1].end = s.end
		return true
	}
	i, _ := slices.BinarySearchFunc(h.spans, s, func(a, b span) int { return a.begin - b.begin })
	if i > 0 && h.spans[i-1].end > s.begin || i < len(h.spans) && h.spans[i].begin < s.end {
		return false
	}
	before, after := i > 0 && h.spans[i-1].end == s.begin, i < len(h.spans) && h.spans[i].begin == s.end
	switch {
	case before && after:
		h.spans[i-1].end = h.spans[i].end
		h.spans = slices.Delete(h.spans, i, i+1)
	case before:
		h.spans[i-1].end = s.end
	case after:
		h.spans[i].begin = s.begin
	default:
		h.spans = slices.Insert(h.spans, i, s)
	}
	return true
}

func (a *assembly) finish(h *partial) {
	a.Heaps++
	a.Packets += h.packets
	a.Bytes += uint64(h.have)
	a.done[a.last%len(a.done)] = h.ID
	a.last++
	h.Payload = h.Payload[:h.have]
	if a.whole != nil {
		a.whole(&h.Heap)
	}
	a.drop(h)
}

// giveUp ends a heap that has no size, or of which a part is missing.
func (a *assembly) giveUp(h *partial) {
	if h.size < 0 && len(h.spans) == 1 && h.spans[0].begin == 0 {
		a.finish(h)
		return
	}
	a.Partial++
	a.drop(h)
}

func (a *assembly) drop(h *partial) {
	i := slices.Index(a.begun, h)
	a.begun = slices.Delete(a.begun, i, i+1)
	a.free = append(a.free, h)
}

// flush drops all incomplete heaps at the end.
func (a *assembly) flush() {
	for len(a.begun) > 0 {
		a.giveUp(a.begun[0])
	}
}
