package spead

import "encoding/binary"

// A Packet is a decoded packet. It refers to the bytes from which it was decoded.
type Packet struct {
	Heap    uint64 // ID of the heap
	Size    int    // payload size of the heap in bytes, or -1 if the packet does not have it
	Offset  int    // of Payload in the heap's payload
	Payload []byte
	Stop    bool // the stream ends with this heap
	items   []byte
	bits    uint // number of bits of an address in items
}

// A DecodeError is the reason why a packet is invalid.
type DecodeError string

// Error returns the reason.
func (f DecodeError) Error() string { return string(f) }

// The faults of packets.
const (
	ErrTooShort    DecodeError = "the packet is shorter than its header says"
	ErrNotSPEAD    DecodeError = "the packet is not SPEAD version 4"
	ErrBadFlavour  DecodeError = "the packet is not SPEAD-64"
	ErrIncomplete  DecodeError = "the packet lacks heap id, offset or length"
	ErrOutsideHeap DecodeError = "the payload exceeds the heap"
)

// Decode decodes a packet of any flavour SPEAD-64-*. It allocates no memory. If it fails, the
// content of p is undefined.
func (p *Packet) Decode(b []byte) error {
	if len(b) < headerBytes {
		return ErrTooShort
	}
	first := binary.BigEndian.Uint64(b)
	if first>>48 != magic<<8|version {
		return ErrNotSPEAD
	}
	ids, addresses := first>>40&0xff, first>>32&0xff
	if ids == 0 || addresses == 0 || ids+addresses != pointerBytes {
		return ErrBadFlavour
	}
	count := int(first & 0xffff)
	at := headerBytes + count*pointerBytes
	if len(b) < at {
		return ErrTooShort
	}
	bits := uint(addresses) * 8
	values := uint64(1)<<bits - 1
	const absent = ^uint64(0)
	heap, size, offset, length := absent, absent, absent, absent
	own := count
	p.Stop = false
	for i := range count {
		w := binary.BigEndian.Uint64(b[headerBytes+i*pointerBytes:])
		value := w & values
		switch w >> bits {
		case 1<<(63-bits) | idHeap:
			heap = value
			continue
		case 1<<(63-bits) | idSize:
			size = value
			continue
		case 1<<(63-bits) | idOffset:
			offset = value
			continue
		case 1<<(63-bits) | idLength:
			length = value
			continue
		case 1<<(63-bits) | idControl:
			p.Stop = p.Stop || value == stopControl
		}
		own = min(own, i)
	}
	if heap == absent || offset == absent || length == absent {
		return ErrIncomplete
	}
	if length > uint64(len(b)-at) {
		return ErrTooShort
	}
	end := offset + length
	if offset > maxHeapBytes || end > maxHeapBytes || size != absent && (size > maxHeapBytes || end > size) {
		return ErrOutsideHeap
	}
	p.Heap, p.Size, p.Offset, p.bits = heap, int(size), int(offset), bits
	if size == absent {
		p.Size = -1
	}
	p.items = b[headerBytes+own*pointerBytes : at]
	p.Payload = b[at : at+int(length)]
	return nil
}
