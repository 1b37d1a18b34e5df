package spead

import (
	"fmt"
	"slices"
)

// Items returns the items of the heap as a receiver sees them. Their values refer to the payload.
func (h *Heap) Items() ([]Item, error) { return itemsOf(h.pointers, h.bits, h.Payload) }

// itemsOf returns the items of a complete heap from its pointers. Their values refer to the
// payload. An addressed item ends where the next one begins (section 3.3 of the specification).
func itemsOf(pointers []uint64, bits uint, payload []byte) ([]Item, error) {
	values := uint64(1)<<bits - 1
	var ends []uint64
	for _, w := range pointers {
		if w&immediateBit == 0 {
			ends = append(ends, w&values)
		}
	}
	slices.Sort(ends)
	var items []Item
	for _, w := range pointers {
		id := int(w &^ immediateBit >> bits)
		value := w & values
		switch {
		case id == idNull:
		case w&immediateBit != 0:
			items = append(items, Item{ID: id, Immediate: true, Value: value})
		case value > uint64(len(payload)):
			return nil, fmt.Errorf("item %#x begins at %d in a payload of %d bytes", id, value, len(payload))
		default:
			end := uint64(len(payload))
			if i, _ := slices.BinarySearch(ends, value+1); i < len(ends) {
				end = min(end, ends[i])
			}
			items = append(items, Item{ID: id, Data: payload[value:end]})
		}
	}
	return items, nil
}
