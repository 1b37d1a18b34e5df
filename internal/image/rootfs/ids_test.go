package rootfs

import "testing"

// TestHas: a node's ids are its range. A node without a range has all ids.
func TestHas(t *testing.T) {
	ids := IDs{First: 1900065536, Size: 65536}
	for id, want := range map[uint32]bool{0: false, 1900065535: false, 1900065536: true, 1900131071: true,
		1900131072: false, 4294967295: false} {
		if ids.Has(id) != want || !(IDs{}).Has(id) {
			t.Errorf("%d: %v", id, ids.Has(id))
		}
	}
}
