package network

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

var quarantined = declared(site.Quarantine("karoo", 701), "cam", "10.8.67.0/24", "", false)

// makeEnds makes links to nodes without nodes, since only the host's ends matter.
func makeEnds(t *testing.T, prefix string, count int, on spec.Network) []string {
	t.Helper()
	var names []string
	for i := range count {
		name := fmt.Sprintf("orv%s%d", prefix, i)
		must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name},
			PeerName: "peer" + prefix + fmt.Sprint(i)}))
		must(t, up(name))
		must(t, up("peer"+prefix+fmt.Sprint(i)))
		(&place{name: name}).join(t, on.Bridge)
		names = append(names, name)
	}
	return names
}

// swapped returns the moves of a switch: old ends into quarantine, new ends out of it.
func swapped(old, fresh []string) []Move {
	var moves []Move
	for i := range old {
		moves = append(moves, Move{old[i], quarantined.Bridge}, Move{fresh[i], cam.Bridge})
	}
	return moves
}

// bridgesOf returns the names of the bridges of links.
func bridgesOf(t *testing.T, names ...string) string {
	t.Helper()
	var on []string
	for _, name := range names {
		link, err := netlink.LinkByName(name)
		must(t, err)
		if link.Attrs().MasterIndex == 0 {
			on = append(on, "-")
			continue
		}
		bridge, err := netlink.LinkByIndex(link.Attrs().MasterIndex)
		must(t, err)
		on = append(on, bridge.Attrs().Name)
	}
	return strings.Join(on, " ")
}

func TestMoveLinksSwapsNodes(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	ctx := context.Background()
	setting(t, "net.ipv4.ip_forward", "1")
	makeAll(t, cam, quarantined)
	client := newPlace(t, "orv1", "10.8.67.9/24", "10.8.67.1")
	client.join(t, cam.Bridge)
	client.do(t, answer)
	node := func(link string, on spec.Network) *place {
		p := newPlace(t, link, "10.8.67.11/24", "10.8.67.1")
		// Both have the hardware address of the same node.
		p.do(t, func() error {
			eth0, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return netlink.LinkSetHardwareAddr(eth0, bridgeMAC("node"))
		})
		p.join(t, on.Bridge)
		p.do(t, answer)
		return p
	}
	old, fresh := node("orv2", cam), node("orv3", quarantined)
	old.reaches(t, "10.8.67.9", "10.8.67.11")
	fresh.misses(t, "10.8.67.9", "10.8.67.1")

	must(t, MoveLinks(ctx, []Move{{"orv2", quarantined.Bridge}, {"orv3", cam.Bridge}}))
	must(t, FlushNeighbours(fmt.Sprintf("/proc/self/fd/%d", fresh.fd))) // it has just called some addresses in vain
	began := time.Now()
	client.reaches(t, "10.8.67.11", "10.8.67.9")
	if took := time.Since(began); took > time.Second { // a bridge that has to learn would take at least two
		t.Errorf("the moved port forwarded only after %s", took)
	}
	fresh.reaches(t, "10.8.67.9", "10.8.67.11")
	old.misses(t, "10.8.67.9", "10.8.67.1")

	// There is nothing to do for repeated moves, nor for an empty list.
	must(t, MoveLinks(ctx, []Move{{"orv2", quarantined.Bridge}, {"orv3", cam.Bridge}}))
	must(t, MoveLinks(ctx, nil))
	if on := bridgesOf(t, "orv2", "orv3"); on != quarantined.Bridge+" "+cam.Bridge {
		t.Errorf("after the second time the links are on %s", on)
	}
}

func TestMoveLinksRefuses(t *testing.T) {
	if !sandbox(t) {
		return
	}
	makeAll(t, cam, quarantined)
	ends := makeEnds(t, "a", 3, cam)
	must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}))
	good := Move{ends[0], quarantined.Bridge}
	for want, wrong := range map[string]Move{
		"no link orv99":       {"orv99", cam.Bridge},
		"no link lo":          {"lo", cam.Bridge},
		"no bridge orb99":     {ends[1], "orb99"},
		"br0 is not one of O": {ends[1], "br0"},
	} {
		if err := MoveLinks(context.Background(), []Move{good, wrong}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v", wrong, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := MoveLinks(ended, []Move{good}); err == nil {
		t.Error("moved after the context had ended")
	}
	if on, want := bridgesOf(t, ends...), strings.Repeat(" "+cam.Bridge, 3)[1:]; on != want {
		t.Errorf("links are on %s, want %s", on, want)
	}
}

// TestMoveLinksGoesBack: the kernel refuses a move in the middle of a batch, because its bridge was
// removed after it was looked up.
func TestMoveLinksGoesBack(t *testing.T) {
	if !sandboxOfRoot(t) {
		return
	}
	makeAll(t, cam, quarantined, closed)
	ends := append(makeEnds(t, "a", 3, cam), makeEnds(t, "b", 1, quarantined)...)
	links, err := netlink.LinkList()
	must(t, err)
	changes, back, err := relinks([]Move{
		{ends[0], quarantined.Bridge}, {ends[1], closed.Bridge}, {ends[3], cam.Bridge}, {ends[2], quarantined.Bridge},
	}, links)
	must(t, err)
	removeAll(t, closed)
	err = relinkAll(changes)
	if err == nil || !strings.Contains(err.Error(), ends[1]+" to "+closed.Bridge) ||
		strings.Contains(err.Error(), ends[0]) {
		t.Errorf("the kernel refused: %v", err)
	}
	must(t, relinkAll(back))
	want := strings.Join([]string{cam.Bridge, cam.Bridge, cam.Bridge, quarantined.Bridge}, " ")
	if on := bridgesOf(t, ends...); on != want {
		t.Errorf("links are on %s, want %s", on, want)
	}
}

// TestMoveLinksKilled: a process that moves links back and forth is killed, and either all links
// were moved or none.
func TestMoveLinksKilled(t *testing.T) {
	const victim = "ORRERY_NETWORK_VICTIM"
	old, fresh := make([]string, 16), make([]string, 16)
	for i := range old {
		old[i], fresh[i] = fmt.Sprintf("orva%d", i), fmt.Sprintf("orvb%d", i)
	}
	if os.Getenv(victim) != "" {
		for {
			must(t, MoveLinks(context.Background(), swapped(old, fresh)))
			must(t, MoveLinks(context.Background(), swapped(fresh, old)))
		}
	}
	if !sandbox(t) {
		return
	}
	makeAll(t, cam, quarantined)
	makeEnds(t, "a", len(old), cam)
	makeEnds(t, "b", len(fresh), quarantined)
	runtime.LockOSThread() // Pdeathsig follows the thread
	found := map[bool]int{}
	for i := range 20 {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), victim+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		must(t, cmd.Start())
		time.Sleep(20*time.Millisecond + time.Duration(i)*701*time.Microsecond)
		must(t, cmd.Process.Kill())
		cmd.Wait()
		on := bridgesOf(t, append(old, fresh...)...)
		half := func(n spec.Network) string { return strings.Repeat(n.Bridge+" ", len(old)) }
		before, after := half(cam)+half(quarantined), half(quarantined)+half(cam)
		if on += " "; on != before && on != after {
			t.Fatalf("left in two halves: %s", on)
		}
		found[on == after]++
	}
	t.Log("found after a kill (switched):", found)
}

// BenchmarkMoveLinks measures how long a switch of several nodes takes in the kernel.
func BenchmarkMoveLinks(b *testing.B) {
	if os.Getenv(inSandbox) == "" {
		b.Skip("ORRERY_NETWORK_SANDBOX=x unshare -nm go test -run '^$' -bench MoveLinks ./internal/network")
	}
	t := &testing.T{}
	must(t, up("lo"))
	makeAll(t, cam, quarantined)
	old, fresh := makeEnds(t, "a", 32, cam), makeEnds(t, "b", 32, quarantined)
	for _, n := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("pairs=%d", n), func(b *testing.B) {
			for b.Loop() {
				must(t, MoveLinks(context.Background(), swapped(old[:n], fresh[:n])))
				must(t, MoveLinks(context.Background(), swapped(fresh[:n], old[:n])))
			}
		})
	}
}
