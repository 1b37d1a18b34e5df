package suspect

import (
	"fmt"

	"orrery/internal/lab/test"
)

// others reports load from processes that do not belong to the lab. It is the processor time of the
// host, minus that of the nodes, of the lab's own programs, and of the idle host.
//
// Programs in a node were started by the lab's process. They count both in the node's cgroup and
// among the lab's children that were waited for, so the larger of the two is the lab's time.
// Interrupts are not counted, because they serve the test. The work of kernel threads for disks and
// packets is system time that is attributed to no process. For tests that cause it, only user time
// is compared.
func others(t trial, c Context) (test.Label, bool) {
	took := t.cpu.User + t.cpu.Nice
	ours := t.self.User + max(t.children.User, t.cgroups.User)
	if kernelIsOurs(c.Kind) {
		took += t.cpu.System
		ours += t.self.System + max(t.children.System, t.cgroups.System)
	}
	total := t.cpu.Total()
	rest := took - ours - c.Baseline.Share()*total
	if total <= 0 || rest <= 0 {
		return test.Label{}, false
	}
	return test.Label{
		Name: Load, Why: fmt.Sprintf("other processes used %.2f of the %.0f processors", rest/t.took, total/t.took),
		Cure: cureLoad,
	}, rest > otherShare*total || rest > otherCores*t.took
}

// kernelIsOurs reports whether the system time of such tests is attributed to the calling tasks.
func kernelIsOurs(kind string) bool { return kind == cpu || kind == micro }

// wrongPath reports traffic over another interface than intended: none of the intended links
// carried as much as the test moved, and another one carried more than they did.
func wrongPath(t trial, c Context) (test.Label, bool) {
	if len(c.Links) == 0 || c.Kind != network && c.Kind != capture && c.Kind != mpi {
		return test.Label{}, false
	}
	meant := map[string]bool{}
	best, bytes := c.Links[0], uint64(0)
	for _, name := range c.Links {
		meant[name] = true
		if t.links[name] > bytes {
			best, bytes = name, t.links[name]
		}
	}
	other, most := "", uint64(0)
	for name, n := range t.links {
		if !meant[name] && (n > most || n == most && name < other) {
			other, most = name, n
		}
	}
	short := c.Bytes == 0 || float64(bytes) < minPathShare*float64(c.Bytes)
	return test.Label{
		Name: Path, Why: fmt.Sprintf("%d bytes went through %s, but %d through %s", bytes, best, most, other),
		Cure: fmt.Sprintf("check the routes: the traffic should go through %s, not %s (ip route get ADDRESS)", best, other),
	}, short && most > bytes && most > minPathBytes
}
