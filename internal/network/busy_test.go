package network

import (
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
)

// TestMoveLinksBusy: with two busy processes per processor, the links of 32 nodes usually change
// places in less than 30 ms. If others keep the kernel busy, too, it is less than half of the time
// without priority. bench/switch measures the worst case.
func TestMoveLinksBusy(t *testing.T) {
	if !sandbox(t) {
		return
	}
	if why := host.WithRealtimePriority(func() {}); why != nil {
		t.Skip(why)
	}
	makeAll(t, cam, quarantined)
	old, fresh := makeEnds(t, "a", 32, cam), makeEnds(t, "b", 32, quarantined)
	for range 2 * runtime.NumCPU() {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		busy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		must(t, busy.Start())
		defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	}
	one := func(do func(send func() error) error) time.Duration {
		links, err := netlink.LinkList()
		must(t, err)
		changes, _, err := relinks(swapped(old, fresh), links)
		must(t, err)
		old, fresh = fresh, old
		b, err := newBatch(changes)
		must(t, err)
		defer b.close()
		var took time.Duration
		must(t, do(func() error {
			began := time.Now()
			err := b.send()
			took = time.Since(began)
			return err
		}))
		must(t, b.readAnswers())
		return took
	}
	var plain, urgent []time.Duration
	for range 20 {
		plain = append(plain, one(func(send func() error) error { return send() }))
		urgent = append(urgent, one(func(send func() error) (err error) {
			if why := host.WithRealtimePriority(func() { err = send() }); why != nil {
				return why
			}
			return err
		}))
	}
	slices.Sort(plain)
	slices.Sort(urgent)
	t.Logf("urgently: median %s, worst %s; otherwise: median %s, worst %s", urgent[10], urgent[19], plain[10], plain[19])
	if urgent[10] > 30*time.Millisecond && urgent[10] > plain[10]/2 {
		t.Errorf("links moved in %s", urgent[10])
	}
}
