package spead

import "encoding/binary"

// An Item is a value in a heap: a number of up to 48 bits in its pointer, or bytes of the payload.
type Item struct {
	ID        int
	Immediate bool
	Value     uint64 // if immediate
	Data      []byte // if not
}

// A Descriptor describes an item to a receiver: its name, and its type and shape as in the header
// of a .npy file.
type Descriptor struct {
	ID                int
	Name, Description string
	// Such as {'shape': (16,), 'fortran_order': False, 'descr': '|u1'}, or "" for an unsigned
	// number of 48 bits.
	Type string
}

// encode returns the value of a descriptor item, which is a heap in one packet.
func (d Descriptor) encode() []byte {
	items := []Item{{ID: idName, Data: []byte(d.Name)}, {ID: idDescription, Data: []byte(d.Description)},
		{ID: idID, Immediate: true, Value: uint64(d.ID)}}
	if d.Type != "" {
		items = append(items, Item{ID: idType, Data: []byte(d.Type)})
	} else {
		// a letter, and a number of bits in as many bytes as an ID has
		format := append([]byte{'u'}, make([]byte, idBytes)...)
		binary.BigEndian.PutUint16(format[1:], addressBits)
		items = append(items, Item{ID: idFormat, Data: format}, Item{ID: idShape, Data: nil})
	}
	size := overhead + len(items)*pointerBytes
	for _, i := range items {
		size += len(i.Data)
	}
	return encode(1, items, size+pointerBytes)[0]
}

// encode returns the packets of a heap. The first packets hold the pointers. size is the maximum
// size of a packet in bytes. Packets except the last of a heap have a size that is a multiple of 8.
func encode(heap uint64, items []Item, size int) [][]byte {
	size = size &^ 7
	most := (size - overhead - 8) / pointerBytes // pointers per packet, with space left for some payload
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

// layOut returns the pointers and the payload of a heap whose packets have space for most pointers
// each. Every packet must have some payload, so that its loss is noticed. If the items have too
// little, layOut adds bytes that belong to no item.
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
