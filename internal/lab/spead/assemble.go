package spead

import (
	"encoding/binary"
	"slices"
)

// A Heap is a whole heap. It is valid until the function that it was given to returns.
type Heap struct {
	ID       uint64
	Payload  []byte
	pointers []uint64
	bits     uint
}

// inFlight is how many heaps of a stream may be begun and not whole, as in spead2.
const inFlight = 4

// An assembly makes heaps of packets. Memory of heaps is used again and again.
type assembly struct {
	begun   []*partial // oldest first
	free    []*partial
	done    [8]uint64 // the heaps that were whole last: a packet that comes twice begins none anew
	last    int
	whole   func(*Heap)
	Heaps   uint64 // that were whole
	Partial uint64 // that were given up, because others came, or at the end
	Packets uint64 // in whole heaps
	Bytes   uint64 // of payload, in whole heaps
	Twice   uint64 // packets whose payload had come before
}

// A partial heap has some of its payload.
type partial struct {
	Heap
	size    int    // -1: not known yet
	have    int    // bytes
	packets uint64 //
	spans   []span // of payload that came, in order, not touching
}

// A span is a part of the payload, from begin to before end.
type span struct{ begin, end int }

func newAssembly(whole func(*Heap)) *assembly {
	return &assembly{whole: whole, done: [8]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0),
		^uint64(0), ^uint64(0), ^uint64(0)}}
}

// prepare gets memory for as many heaps as may be begun at once, and touches it: a page that is
// touched for the first time while packets come costs as much as several packets.
func (a *assembly) prepare(size int) {
	for range inFlight {
		h := &partial{}
		h.room(min(size, maxSize))
		touch(h.Payload)
		a.free = append(a.free, h)
	}
}

// touch makes the kernel give the pages of new memory.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0
	}
}

// add takes a packet.
func (a *assembly) add(p *Packet) {
	h := a.find(p)
	if h == nil || !h.take(p) {
		a.Twice++
		return
	}
	if h.size >= 0 && h.have == h.size {
		a.finish(h)
	}
}

// find returns the heap of a packet, begun if it was not; nil if it was whole already.
func (a *assembly) find(p *Packet) *partial {
	for i := len(a.begun) - 1; i >= 0; i-- {
		if h := a.begun[i]; h.ID == p.Heap {
			return h
		}
	}
	if slices.Contains(a.done[:], p.Heap) {
		return nil
	}
	if len(a.begun) == inFlight {
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
	h.room(max(p.Size, len(p.Payload)+p.Offset))
}

// room makes the payload n bytes long at least.
func (h *partial) room(n int) {
	if n > cap(h.Payload) {
		grown := make([]byte, n)
		copy(grown, h.Payload)
		h.Payload = grown
	}
	h.Payload = h.Payload[:n]
}

// take copies what a packet brings; it reports whether that is new.
func (h *partial) take(p *Packet) bool {
	end := p.Offset + len(p.Payload)
	if p.Size >= 0 {
		h.size = p.Size
	}
	if h.size >= 0 && end > h.size {
		return false // two packets disagree about the size
	}
	if end > len(h.Payload) {
		h.room(end)
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

// cover notes that a part of the payload came; it reports whether none of it had come before.
func (h *partial) cover(s span) bool {
	if n := len(h.spans); n > 0 && h.spans[n-1].end == s.begin { // in order, as nearly always
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

// giveUp ends a heap that did not say its size, or of which something is missing.
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

// flush drops the heaps that are begun: nothing more comes.
func (a *assembly) flush() {
	for len(a.begun) > 0 {
		a.giveUp(a.begun[0])
	}
}
