// Package spead sends and receives streams of SPEAD heaps over UDP.
//
// Radio telescopes use SPEAD between correlator and storage.
//
// The package uses SPEAD-64-48: item pointers of 64 bits, of which 48 are a heap address or an
// immediate value ("SPEAD: Streaming Protocol for Exchanging Astronomical Data", SSA4700-0000-001,
// revision 1 of 2012). spead2's programs use the same with their usual flags.
//
// A packet is a header of 8 bytes, item pointers of 8 bytes each, and payload:
//
//	0x53 0x04  item id bytes  address bytes  0 0  number of pointers (2 bytes)
//	pointer:   1 bit immediate | 15 bits item id | 48 bits value or address
//
// Addresses are relative to the beginning of the heap's payload. Each packet has the heap's ID and
// the offset and length of its own payload.
package spead

import "encoding/binary"

const (
	magic   = 0x53
	version = 4

	headerBytes  = 8
	pointerBytes = 8
	addressBytes = 6                                 // of SPEAD-64-48
	idBytes      = pointerBytes - addressBytes       // with the immediate bit
	overhead     = headerBytes + 4*pointerBytes      // of a packet without further items
	addressBits  = 8 * addressBytes                  // of a pointer
	mask         = uint64(1)<<addressBits - 1        // of the value or address
	immediateBit = uint64(1) << 63                   // of a pointer
	firstWord    = uint64(magic)<<56 | version<<48 | // of a packet, without the number of pointers
		idBytes<<40 | addressBytes<<32
)

// The items of the protocol itself.
const (
	idNull       = 0x00
	idHeap       = 0x01 // ID of the packet's heap
	idSize       = 0x02 // payload size of the heap in bytes
	idOffset     = 0x03 // of this packet's payload in that of the heap
	idLength     = 0x04 // of this packet's payload
	idDescriptor = 0x05
	idControl    = 0x06

	idName        = 0x10
	idDescription = 0x11
	idShape       = 0x12
	idFormat      = 0x13
	idID          = 0x14
	idType        = 0x15 // as in the header of a .npy file
)

// stopControl is the value of the control item in the last heap of a stream.
const stopControl = 2

// maxHeapBytes is the maximum accepted size of a heap in bytes. A packet with a larger size is damaged,
// or would exhaust the memory.
const maxHeapBytes = 256 << 20

func immediate(id int, value uint64) uint64 {
	return immediateBit | uint64(id)<<addressBits | value&mask
}

func addressed(id int, address uint64) uint64 { return uint64(id)<<addressBits | address&mask }

func put(b []byte, words ...uint64) {
	for i, w := range words {
		binary.BigEndian.PutUint64(b[8*i:], w)
	}
}
