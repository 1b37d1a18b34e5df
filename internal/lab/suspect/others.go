package suspect

import (
	"fmt"

	"orrery/internal/lab/test"
)

// others finds load that the lab did not make: what the host took, without what nodes and the lab's
// own programs took and without what the idle host takes.
//
// Programs that run in a node were started by the lab's process and count both in the node's cgroup
// and among its children that were waited for, so the larger of the two is what the lab took.
// Interrupts are left out, as they serve the test, and what the kernel's threads do for disks and
// packets is system time that nobody is charged with: there only user time tells.
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
		Name: Load, Why: fmt.Sprintf("others took %.2f of the %.0f processors meanwhile", rest/t.took, total/t.took),
		Cure: cureLoad,
	}, rest > otherShare*total || rest > otherCores*t.took
}

// kernelIsOurs: system time of such tests is charged to the tasks that called the kernel.
func kernelIsOurs(kind string) bool { return kind == cpu || kind == micro }

// elsewhere finds traffic that went another way than it was meant to: none of the links that were
// meant moved what the test did, and another one moved more than they.
func elsewhere(t trial, c Context) (test.Label, bool) {
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
	short := c.Bytes == 0 || float64(bytes) < pathShare*float64(c.Bytes)
	return test.Label{
		Name: Path, Why: fmt.Sprintf("%d bytes went through %s, but %d through %s", bytes, best, most, other),
		Cure: fmt.Sprintf("look at the routes: the traffic should go through %s, not %s (ip route get ADDRESS)", best, other),
	}, short && most > bytes && most > pathLeast
}
