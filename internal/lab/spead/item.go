package spead

import "encoding/binary"

// An Item is a value in a heap: a number of up to 48 bits in its pointer, or bytes of the payload.
type Item struct {
	ID        int
	Immediate bool
	Value     uint64 // if immediate
	Data      []byte // if not
}

// A Descriptor tells a receiver of an item: its name, and its type and shape as the header of a
// .npy file has them.
type Descriptor struct {
	ID                int
	Name, Description string
	// such as {'shape': (16,), 'fortran_order': False, 'descr': '|u1'}; "": an unsigned number of 48
	// bits
	Type string
}

// encode returns the value of a descriptor item: a heap of its own, in one packet.
func (d Descriptor) encode() []byte {
	items := []Item{{ID: idName, Data: []byte(d.Name)}, {ID: idDescription, Data: []byte(d.Description)},
		{ID: idID, Immediate: true, Value: uint64(d.ID)}}
	if d.Type != "" {
		items = append(items, Item{ID: idType, Data: []byte(d.Type)})
	} else {
		format := append([]byte{'u'}, make([]byte, idBytes)...) // a letter, and bits in as many bytes as an id has
		binary.BigEndian.PutUint16(format[1:], addressBits)
		items = append(items, Item{ID: idFormat, Data: format}, Item{ID: idShape, Data: nil})
	}
	size := overhead + len(items)*pointerBytes
	for _, i := range items {
		size += len(i.Data)
	}
	return encode(1, items, size+pointerBytes)[0]
}

// encode returns the packets of a heap. The first ones hold the pointers; size is the largest that
// a packet may have, in bytes. The size of a packet that is not the last of its heap is a multiple of 8.
func encode(heap uint64, items []Item, size int) [][]byte {
	size = size &^ 7
	most := (size - overhead - 8) / pointerBytes // in a packet: it has room for some payload, too
	pointers, payload := layOut(items, most)
	total := len(payload)
	var packets [][]byte
	for offset := 0; offset < total; {
		n := min(len(pointers), most)
		length := min(total-offset, size-overhead-n*pointerBytes)
		p := make([]byte, overhead+n*pointerBytes+length)
		put(p, firstWord|uint64(4+n), immediate(idHeap, heap), immediate(idSize, uint64(total)),
			immediate(idOffset, uint64(offset)), immediate(idLength, uint64(length)))
		put(p[overhead:], pointers[:n]...)
		copy(p[overhead+n*pointerBytes:], payload[offset:offset+length])
		pointers, offset = pointers[n:], offset+length
		packets = append(packets, p)
	}
	return packets
}

// layOut returns the pointers and the payload of a heap whose packets have room for most pointers
// each. Every packet must have some payload, by which a lost one is known: if the items have too
// little, bytes are added that belong to none.
func layOut(items []Item, most int) (pointers []uint64, payload []byte) {
	for _, i := range items {
		if i.Immediate {
			pointers = append(pointers, immediate(i.ID, i.Value))
			continue
		}
		pointers = append(pointers, addressed(i.ID, uint64(len(payload))))
		payload = append(payload, i.Data...)
	}
	if least := len(pointers)/most*8 + 1; len(payload) < least {
		pointers = append(pointers, addressed(idNull, uint64(len(payload))))
		payload = append(payload, make([]byte, least-len(payload))...)
	}
	return pointers, payload
}
