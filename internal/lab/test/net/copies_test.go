package net

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"orrery/test/need"
)

// TestLiveCopies: concurrent copies use one far end, each with ports of its own, and begin each
// part together.
func TestLiveCopies(t *testing.T) {
	need.Integration(t)
	a, b := pair(t)
	n, err := New(from("protocols = [\"tcp\"]\nstreams = [1]\ndirections = [\"reverse\"]\npackets = false"))
	if err != nil {
		t.Fatal(err)
	}
	const copies = 3
	var came [2]sync.WaitGroup // for each part
	for i := range came {
		came[i].Add(copies)
	}
	var group sync.WaitGroup
	for i := range copies {
		tr := trial(a, b)
		tr.Copy, tr.Of = i, copies
		part := 0
		tr.Barrier = func(context.Context) error {
			came[part].Done()
			came[part].Wait()
			part++
			return nil
		}
		group.Go(func() {
			r, err := n.Run(t.Context(), tr)
			if err != nil || len(r.Samples) != 3 {
				t.Errorf("copy %d: %v, %v", i, r.Samples, err)
				if part == 0 { // release the other copies
					came[0].Done()
				}
				if part <= 1 {
					came[1].Done()
				}
			}
		})
	}
	group.Wait()
}

// TestCut: truncated output never yields figures, and garbage in the output causes no panic.
func TestCut(t *testing.T) {
	flows, trip := read(t, "udp-unlimited.json"), read(t, "sockperf.txt")
	rapid.Check(t, func(t *rapid.T) {
		if n := rapid.IntRange(0, len(flows)-3).Draw(t, "iperf3"); n > 0 {
			if _, err := parseIperf(flows[:n]); err == nil {
				t.Fatalf("%d bytes of %d of iperf3 are enough", n, len(flows))
			}
		}
		if n := rapid.IntRange(0, len(trip)-60).Draw(t, "sockperf"); n > 0 {
			if _, err := parseSockperf(trip[:n]); err == nil {
				t.Fatalf("%d bytes of %d of sockperf are enough", n, len(trip))
			}
		}
		i, with := rapid.IntRange(0, len(flows)-1).Draw(t, "at"), rapid.Byte().Draw(t, "byte")
		spoilt := fmt.Appendf(nil, "%s%c%s", flows[:i], with, flows[i+1:])
		if f, err := parseIperf(spoilt); err == nil && (f.loss() < 0 || f.loss() > 1 || f.packetRate(64) < 0) {
			t.Fatalf("of %s: %+v", spoilt, f)
		}
	})
}
