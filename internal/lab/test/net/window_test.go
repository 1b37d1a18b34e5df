package net

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
)

// TestPaper: the settings of a paper's iperf runs are passed to iperf3: a window of 256 KiB, five
// streams, minutes. Small packets have no window.
func TestPaper(t *testing.T) {
	made, err := New(from("window = \"256KiB\"\nstreams = [5]\nseconds = 900"))
	if err != nil {
		t.Fatal(err)
	}
	n, at := made.(*net), &test.Trial{Far: &place.Place{Address: netip.MustParseAddr("10.99.0.2")}}
	parts := n.parts()
	args := strings.Join(n.arguments(at, parts[0], 1472), " ")
	for _, want := range []string{"-t 900 ", "-P 5 ", "-w 262144"} {
		if !strings.Contains(args, want) {
			t.Errorf("%q is not in %q", want, args)
		}
	}
	small := slices.IndexFunc(parts, func(p part) bool { return p.packets })
	if slices.Contains(n.arguments(at, parts[small], 1472), "-w") {
		t.Error("small packets have a window")
	}
	if n.Window = 0; slices.Contains(n.arguments(at, parts[0], 1472), "-w") {
		t.Error("a window that nobody asked for")
	}
}

// TestWarmUp: the start of a TCP stream is omitted unless warm_up is 0. UDP has no slow start.
func TestWarmUp(t *testing.T) {
	at := &test.Trial{Far: &place.Place{Address: netip.MustParseAddr("10.99.0.2")}}
	for text, want := range map[string]string{"": "-O 1", "warm_up = 3": "-O 3", "warm_up = 0": ""} {
		made, err := New(from("streams = [1]\npackets = false\nrtt = false\ndirections = [\"forward\"]\n" + text))
		if err != nil {
			t.Fatal(err)
		}
		n := made.(*net)
		tcps, udps := n.arguments(at, n.parts()[0], 1472), strings.Join(n.arguments(at, n.parts()[1], 1472), " ")
		if args := strings.Join(tcps, " "); !strings.Contains(args, want) || want == "" && slices.Contains(tcps, "-O") ||
			strings.Contains(udps, "-O") {
			t.Errorf("%q: tcp %s; udp %s", text, args, udps)
		}
	}
	if _, err := New(from("warm_up = 61")); err == nil ||
		!strings.Contains(err.Error(), "warm_up = 61 (write whole seconds, from 0 to 60)") {
		t.Error(err)
	}
}

// TestWindow: the label for a reduced window has the granted size. If iperf3 refuses the window,
// the error has a cure.
func TestWindow(t *testing.T) {
	n := &net{options{Window: 256 << 10}}
	p := part{protocol: tcp, direction: forward, streams: 5}
	f, err := parseIperf(read(t, "tcp-window-5.json"))
	if err != nil || f.SendBuffer != 524288 || len(n.labelSmallWindow(p, f)) != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	f.SendBuffer = 425984 // with net.core.wmem_max of a stock kernel
	if l := n.labelSmallWindow(p, f); len(l) != 1 || l[0].Name != "window" ||
		!strings.Contains(l[0].Why, "212992 bytes instead of 256k") {
		t.Errorf("labels %v", l)
	}
	n.Window = 0
	if l := n.labelSmallWindow(p, f); len(l) != 0 {
		t.Errorf("labels %v", l)
	}
	if _, err := parseIperf(read(t, "invalid-window.json")); err == nil ||
		!strings.Contains(err.Error(), "decrease window") {
		t.Error(err)
	}
}
