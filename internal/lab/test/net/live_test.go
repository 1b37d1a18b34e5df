package net

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/test/need"
)

// space is a network namespace with its own /sys. It disappears when the process that holds it
// ends, at the latest at the end of the test.
type space struct {
	host.Local
	pid int
}

func (s space) Run(ctx context.Context, c host.Command) error {
	c.Args = append([]string{"nsenter", "-t", fmt.Sprint(s.pid), "-n", "-m", "--"}, c.Args...)
	return s.Local.Run(ctx, c)
}

func newSpace(t *testing.T, name string) *place.Place {
	t.Helper()
	cmd := exec.Command("unshare", "-n", "-m", "sh", "-c",
		"mount -t sysfs sysfs /sys && ip link set lo up && echo up && exec sleep 300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%s is not up: %q, %v", name, line, err)
	}
	return &place.Place{Runner: space{host.Local{Name: name}, cmd.Process.Pid}, Name: name}
}

// pair returns two places that are connected by two veth pairs, eth0 and eth1.
func pair(t *testing.T) (a, b *place.Place) {
	t.Helper()
	a, b = newSpace(t, "a"), newSpace(t, "b")
	a.Interface, b.Interface, a.Address, b.Address = "eth0", "eth0", netip.MustParseAddr("10.99.140.1"),
		netip.MustParseAddr("10.99.140.2")
	for i, p := range []*place.Place{a, b} {
		for j, name := range []string{"eth0", "eth1"} {
			if i == 0 {
				do(t, a, fmt.Sprintf("ip link add %s type veth peer name %s netns %d", name, name, b.Runner.(space).pid))
			}
			do(t, p, fmt.Sprintf("ip link set %s up", name))
			do(t, p, fmt.Sprintf("ip addr add 10.99.14%d.%d/24 dev %s", j, i+1, name))
		}
	}
	return a, b
}

func do(t *testing.T, p *place.Place, command string) {
	t.Helper()
	if err := p.Run(t.Context(), host.Command{Args: strings.Fields(command)}); err != nil {
		t.Fatal(err)
	}
}

func trial(a, b *place.Place) *test.Trial {
	return &test.Trial{Near: a, Far: b, Of: 1, Barrier: func(context.Context) error { return nil },
		Keep: func(string, []byte) error { return nil }}
}

// TestLive: every figure is measured over the intended interface, and both ports are free
// afterwards.
func TestLive(t *testing.T) {
	need.Integration(t)
	a, b := pair(t)
	n, err := New(from("streams = [2]\ndirections = [\"reverse\"]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Check(t.Context(), trial(a, b)); err != nil {
		t.Fatal(err)
	}
	r, err := n.Run(t.Context(), trial(a, b))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, s := range r.Samples {
		got[s.Figure] = s.Value
	}
	for _, f := range n.Figures() {
		if v, ok := got[f.Name]; !ok || v < 0 || v == 0 && f.Unit != "1" {
			t.Errorf("%s: %v, %v", f.Name, v, ok)
		}
	}
	if len(r.Labels) != 0 {
		t.Errorf("labels %v", r.Labels)
	}
	t.Log(got)
	if err := n.Check(t.Context(), trial(a, b)); err != nil {
		t.Error(err)
	}
}

// TestLiveLabels: labels report traffic over another interface, different MTUs, and a sender that
// does not reach its rate.
func TestLiveLabels(t *testing.T) {
	need.Integration(t)
	a, b := pair(t)
	b.Address = netip.MustParseAddr("10.99.141.2") // reachable through eth1
	do(t, a, "ip link set eth0 mtu 1400")
	n, err := New(from("protocols = [\"udp\"]\nstreams = [1]\ndirections = [\"forward\"]\nrtt = false\npackets = false\nrate = \"900Gbit/s\""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.Run(t.Context(), trial(a, b))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range r.Labels {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "mtu sender path" {
		t.Errorf("labels %v", r.Labels)
	}
	if d := r.Detail.(*detail); d.Datagram != 1372 {
		t.Errorf("detail %+v", d)
	}
}

// TestLiveFailure: a port in use, an unreachable end and a missing tool are reported, by the check
// or during the trial.
func TestLiveFailure(t *testing.T) {
	need.Integration(t)
	a, b := pair(t)
	n, err := New(from("protocols = [\"tcp\"]\nstreams = [1]\ndirections = [\"forward\"]\nrtt = false\npackets = false"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx, host.Command{Args: []string{"iperf3", "-s", "-p", "5201"}})
	}()
	for n.Check(t.Context(), trial(a, b)) == nil {
	}
	err = n.Check(t.Context(), trial(a, b))
	cancel()
	<-done
	if err == nil || !strings.Contains(err.Error(), "b: tcp port 5201 is in use") {
		t.Errorf("with a port taken: %v", err)
	}
	do(t, b, "ip link set eth0 down")
	do(t, a, "ip route add unreachable 10.99.142.0/24")
	b.Address = netip.MustParseAddr("10.99.142.2")
	if _, err := n.Run(t.Context(), trial(a, b)); err == nil ||
		!strings.HasPrefix(err.Error(), "a: iperf3: tcp forward 1 stream: iperf3 failed: unable to connect") {
		t.Errorf("without a way: %v", err)
	}
	a.Programs = func(name string) []string { return []string{"/nowhere/" + name} }
	if err := n.Check(t.Context(), trial(a, b)); err == nil || !strings.Contains(err.Error(), "a: iperf3 cannot be run") {
		t.Errorf("without the tool: %v", err)
	}
}
