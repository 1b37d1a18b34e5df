package capture

import "orrery/internal/lab/spead"

// Drops says where the packets of a lossy trial were dropped.
type Drops struct {
	Lost uint64 `json:"lost"` // packets sent that are in no complete heap
	// Where is the number of packets dropped at each place. The packets that the kernel dropped are
	// divided in proportion to the counters, because a kernel that handles many packets as one
	// (GSO, GRO) counts them as one.
	Where    map[string]uint64 `json:"where"`
	Counters Counters          `json:"counters,omitempty"` // counters that grew, with the kernel's values
}

// locateDrops finds out where packets were dropped, from the counts at both ends and the kernel's
// counters. Heaps that were due but never sent are not lost: their trial is invalid.
func locateDrops(sent spead.Sent, got spead.Received, inWhole uint64, counted Counters) Drops {
	d := Drops{Where: map[string]uint64{}, Counters: counted}
	d.Lost = saturatingSub(sent.Packets, inWhole)
	d.Where[atApplication] = saturatingSub(got.Packets, inWhole)
	way := saturatingSub(d.Lost, d.Where[atApplication])
	counts := map[string]uint64{
		atNIC: counted.sum(atNIC), atSoftnet: counted.sum(atSoftnet), atLink: counted.sum(atLink), atIP: counted.sum(atIP),
		atSocket: max(counted[atSocket+" RcvbufErrors"]+counted[atSocket+" MemErrors"], got.Dropped),
	}
	// A veth also counts a packet if its peer has no room in the backlog.
	counts[atLink] = saturatingSub(counts[atLink], counts[atSoftnet])
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
		d.Where[largest(counts)] += left // the remainder after rounding
	}
	for where, n := range d.Where {
		if n == 0 {
			delete(d.Where, where)
		}
	}
	return d
}

func saturatingSub(a, b uint64) uint64 { return a - min(a, b) }

// largest returns the place with the highest count. If several are equal, it returns the first on
// the way.
func largest(counts map[string]uint64) string {
	best := atNIC
	for _, where := range []string{atSoftnet, atLink, atIP, atSocket} {
		if counts[where] > counts[best] {
			best = where
		}
	}
	return best
}
