package capture

import "orrery/internal/lab/spead"

// Died says where the packets of a lossy trial died.
type Died struct {
	Lost uint64 `json:"lost"` // packets sent that are in no whole heap
	// Where is how many packets died at each place on the way. What the kernel dropped is divided among the
	// places by their counters: a kernel that handles many packets as one (GSO, GRO) also counts them as one.
	Where    map[string]uint64 `json:"where"`
	Counters Counters          `json:"counters,omitempty"` // those that grew, as they were
}

// autopsy finds out where packets died, from what was counted at both ends and by the kernel in
// between. Heaps that were due and never sent are no loss: their trial is invalid.
func autopsy(sent spead.Sent, got spead.Received, inWhole uint64, counted Counters) Died {
	d := Died{Where: map[string]uint64{}, Counters: counted}
	d.Lost = less(sent.Packets, inWhole)
	d.Where[atApplication] = less(got.Packets, inWhole)
	way := less(d.Lost, d.Where[atApplication])
	counts := map[string]uint64{
		atNIC: counted.sum(atNIC), atSoftnet: counted.sum(atSoftnet), atLink: counted.sum(atLink), atIP: counted.sum(atIP),
		atSocket: max(counted[atSocket+" RcvbufErrors"]+counted[atSocket+" MemErrors"], got.Dropped),
	}
	// A veth whose peer has no room in the backlog counts the packet as well.
	counts[atLink] = less(counts[atLink], counts[atSoftnet])
	var total uint64
	for _, n := range counts {
		total += n
	}
	left := way
	for _, where := range []string{atNIC, atSoftnet, atLink, atIP, atSocket} {
		if n := counts[where]; n > 0 {
			share := uint64(float64(way) * float64(n) / float64(total))
			d.Where[where] = share
			left -= min(left, share)
		}
	}
	if total == 0 {
		d.Where[atUnknown] = left
	} else {
		d.Where[largest(counts)] += left // by rounding
	}
	for where, n := range d.Where {
		if n == 0 {
			delete(d.Where, where)
		}
	}
	return d
}

func less(a, b uint64) uint64 { return a - min(a, b) }

// largest returns the place with most; of equals, the first on the way.
func largest(counts map[string]uint64) string {
	best := atNIC
	for _, where := range []string{atSoftnet, atLink, atIP, atSocket} {
		if counts[where] > counts[best] {
			best = where
		}
	}
	return best
}
