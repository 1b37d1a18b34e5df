package spead

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// items draws the items of a heap, immediate ones and ones in the payload.
func items(t *rapid.T) []Item {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
		id := rapid.IntRange(0x1000, 0x7fff).Draw(t, "id")
		if rapid.Bool().Draw(t, "immediate") {
			return Item{ID: id, Immediate: true, Value: rapid.Uint64Max(mask).Draw(t, "value")}
		}
		return Item{ID: id, Data: rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(t, "data")}
	}), 1, 40).Draw(t, "items")
}

// TestHeapsComeBack: a heap can be rebuilt from packets of any size, in any order, with duplicates.
// If a packet is missing, there is no heap.
func TestHeapsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := items(t)
		packets := encode(7, sent, rapid.IntRange(64, 9000).Draw(t, "packet"))
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		shuffle.Shuffle(len(packets), func(i, j int) { packets[i], packets[j] = packets[j], packets[i] })
		lost := rapid.IntRange(-1, len(packets)-1).Draw(t, "lost")
		var got [][]Item
		a := newAssembly(func(h *Heap) {
			items, err := h.Items()
			if err != nil {
				t.Fatal(err)
			}
			for i := range items {
				items[i].Data = bytes.Clone(items[i].Data)
			}
			got = append(got, items)
		})
		for i, b := range packets {
			var p Packet
			if err := p.Decode(b); err != nil {
				t.Fatal(err)
			}
			if i == lost {
				continue
			}
			a.add(&p)
			if shuffle.IntN(4) == 0 {
				a.add(&p)
			}
		}
		a.flush()
		if lost >= 0 {
			if len(got) != 0 || len(packets) > 1 && a.Partial != 1 {
				t.Fatalf("without packet %d: %d whole and %d partial heaps", lost, a.Heaps, a.Partial)
			}
			return
		}
		if len(got) != 1 || a.Packets != uint64(len(packets)) {
			t.Fatalf("%d heaps of %d packets, sent one of %d", len(got), a.Packets, len(packets))
		}
		same(t, sent, got[0])
	})
}

// same compares items regardless of their order: pointers arrive in the order of the packets.
func same(t *rapid.T, sent, got []Item) {
	t.Helper()
	order := func(a, b Item) int {
		if a.ID != b.ID {
			return a.ID - b.ID
		}
		return cmp.Or(cmp.Compare(a.Value, b.Value), bytes.Compare(a.Data, b.Data))
	}
	slices.SortStableFunc(sent, order)
	slices.SortStableFunc(got, order)
	if !slices.EqualFunc(sent, got, func(a, b Item) bool {
		return a.ID == b.ID && a.Immediate == b.Immediate && a.Value == b.Value && bytes.Equal(a.Data, b.Data)
	}) {
		t.Fatalf("sent %v\n got %v", sent, got)
	}
}

func TestFaults(t *testing.T) {
	good := encode(1, []Item{{ID: idData, Data: make([]byte, 64)}}, 256)[0]
	with := func(change func(b []byte)) []byte { b := bytes.Clone(good); change(b); return b }
	for name, c := range map[string]struct {
		packet []byte
		want   error
	}{
		"good":            {good, nil},
		"empty":           {nil, ErrTooShort},
		"no pointers":     {good[:8], ErrTooShort},
		"cut":             {good[:len(good)-1], ErrTooShort},
		"magic":           {with(func(b []byte) { b[0] = 0x54 }), ErrNotSPEAD},
		"version":         {with(func(b []byte) { b[1] = 3 }), ErrNotSPEAD},
		"SPEAD-32":        {with(func(b []byte) { b[2], b[3] = 1, 3 }), ErrBadFlavour},
		"no offset":       {with(func(b []byte) { b[overhead-15] = 0x33 }), ErrIncomplete},
		"beyond the heap": {with(func(b []byte) { b[8+2*8+6] = 1 }), ErrOutsideHeap},
		"huge":            {with(func(b []byte) { b[8+8+2] = 1 }), ErrOutsideHeap},
	} {
		var p Packet
		if err := p.Decode(c.packet); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// FuzzDecode: no packet makes the decoder or the assembly panic, and decoded values are within the
// packet and the heap.
func FuzzDecode(f *testing.F) {
	for _, p := range encode(3, append(descriptors(100), Item{ID: idTime, Immediate: true, Value: 5},
		Item{ID: idData, Data: make([]byte, 100)}), 200) {
		f.Add(p)
	}
	f.Add(encode(4, []Item{{ID: idControl, Immediate: true, Value: stopControl}}, 256)[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Packet
		if p.Decode(b) != nil {
			return
		}
		if p.Offset < 0 || p.Size >= 0 && p.Offset+len(p.Payload) > p.Size ||
			len(p.Payload)+len(p.items)+headerBytes > len(b) {
			t.Fatalf("%+v of %d bytes", p, len(b))
		}
		if p.Size > 1<<20 || p.Offset > 1<<20 {
			return // permitted, but slow in the fuzzer
		}
		a := newAssembly(func(h *Heap) { _, _ = h.Items() })
		a.add(&p)
		a.add(&p)
		a.flush()
		if a.Heaps+a.Partial > 2 {
			t.Fatalf("%d whole and %d partial heaps of one packet", a.Heaps, a.Partial)
		}
	})
}

// TestPieces: the pieces contain all packets of some heaps in order, and the kernel can segment
// each piece.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full := rapid.IntRange(16, 1200).Draw(t, "packet") * 8
		f := newFrame(rapid.IntRange(1, 300<<10).Draw(t, "heap"), full, nil)
		heaps := rapid.IntRange(1, f.heaps).Draw(t, "heaps")
		at, whole := 0, 0
		for _, p := range f.pieces(heaps, full) {
			size := 0
			for i, n := range p.packets {
				size += n
				if n > full || n < full && i < len(p.packets)-1 {
					t.Fatalf("packet %d of %d has %d bytes, a full one %d", i, len(p.packets), n, full)
				}
			}
			if p.begin != at || p.end-p.begin != size || size > maxPacketBytes || len(p.packets) > maxSegments {
				t.Fatalf("piece %d to %d of %d packets after %d", p.begin, p.end, len(p.packets), at)
			}
			at, whole = p.end, whole+p.heaps
		}
		if at != heaps*f.heap() || whole != heaps {
			t.Fatalf("%d bytes of %d heaps, want %d of %d", at, whole, heaps*f.heap(), heaps)
		}
	})
}

// TestManyHeaps: only a few incomplete heaps are kept, and a late packet does not start a heap
// again.
func TestManyHeaps(t *testing.T) {
	a := newAssembly(nil)
	data := []Item{{ID: idData, Data: make([]byte, 400)}}
	var p Packet
	for id := range uint64(100) {
		if err := p.Decode(encode(id, data, 128)[0]); err != nil {
			t.Fatal(err)
		}
		a.add(&p)
	}
	if len(a.begun) != maxIncompleteHeaps || a.Partial != 100-maxIncompleteHeaps || len(a.free) > maxIncompleteHeaps {
		t.Errorf("%d begun, %d given up, %d free", len(a.begun), a.Partial, len(a.free))
	}
	for _, b := range encode(1000, data, 128) {
		if err := p.Decode(b); err != nil {
			t.Fatal(err)
		}
		a.add(&p)
	}
	a.add(&p)
	if a.Heaps != 1 || a.Twice != 1 {
		t.Errorf("%d whole heaps, %d packets twice", a.Heaps, a.Twice)
	}
}
