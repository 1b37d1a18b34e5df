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

// A Fault is the reason why a packet is invalid.
type Fault string

// Error returns the reason.
func (f Fault) Error() string { return string(f) }

// The faults of packets.
const (
	TooShort   Fault = "the packet is shorter than what it says is in it"
	NotSPEAD   Fault = "the packet does not begin as one of SPEAD version 4 does"
	BadFlavour Fault = "the packet is not of SPEAD-64"
	Incomplete Fault = "the packet lacks heap id, offset or length"
	Outside    Fault = "the payload is not within the heap"
)

// Decode decodes a packet of any flavour SPEAD-64-*. It allocates no memory. If it fails, the
// content of p is undefined.
func (p *Packet) Decode(b []byte) error {
	if len(b) < headerBytes {
		return TooShort
	}
	first := binary.BigEndian.Uint64(b)
	if first>>48 != magic<<8|version {
		return NotSPEAD
	}
	ids, addresses := first>>40&0xff, first>>32&0xff
	if ids == 0 || addresses == 0 || ids+addresses != pointerBytes {
		return BadFlavour
	}
	count := int(first & 0xffff)
	at := headerBytes + count*pointerBytes
	if len(b) < at {
		return TooShort
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
			p.Stop = p.Stop || value == stop
		}
		own = min(own, i)
	}
	if heap == absent || offset == absent || length == absent {
		return Incomplete
	}
	if length > uint64(len(b)-at) {
		return TooShort
	}
	end := offset + length
	if offset > maxSize || end > maxSize || size != absent && (size > maxSize || end > size) {
		return Outside
	}
	p.Heap, p.Size, p.Offset, p.bits = heap, int(size), int(offset), bits
	if size == absent {
		p.Size = -1
	}
	p.items = b[headerBytes+own*pointerBytes : at]
	p.Payload = b[at : at+int(length)]
	return nil
}
