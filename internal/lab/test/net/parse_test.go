package net

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/lab/place"
)

// read returns a file of testdata: output of Debian 12's iperf3 3.12 and sockperf 3.7 between two
// network namespaces.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestParseIperf(t *testing.T) {
	f, err := parseIperf(read(t, "tcp-forward-2.json"))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "received by TCP", f.Received, 12895255241.527843)
	if f.Retransmits == nil || *f.Retransmits != 2249 || f.Version != "iperf 3.12" || f.Congestion != "bbr" {
		t.Errorf("two streams of TCP: %+v", f)
	}
	if f, err = parseIperf(read(t, "tcp-reverse.json")); err != nil {
		t.Fatal(err)
	}
	near(t, "received by TCP in reverse", f.Received, 11568429997.08013)
	if f, err = parseIperf(read(t, "udp-unlimited.json")); err != nil {
		t.Fatal(err)
	}
	near(t, "received by UDP", f.Received, 1174261525.1005719)
	near(t, "sent by UDP", f.Sent, 3236045331.42439)
	near(t, "loss", f.loss(), 1-147042496.0/405153280)
	if f, err = parseIperf(read(t, "udp-packets-reverse.json")); err != nil {
		t.Fatal(err)
	}
	near(t, "packet rate", f.packetRate(64), 11994112.0/64/1.000009)
	if f, err = parseIperf(read(t, "udp-100M-2.json")); err != nil {
		t.Fatal(err)
	}
	near(t, "loss of a slow sender", f.loss(), 0)
	near(t, "jitter", f.Jitter, 0.004124565714518038e-3)
}

func TestParseSockperf(t *testing.T) {
	seen, err := parseSockperf(read(t, "sockperf.txt"))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "median", seen.Median, 4.732e-6)
	near(t, "tail", seen.Tail, 14.783e-6)
	near(t, "least", seen.Least, 4.493e-6)
	if seen.Observations != 100166 || seen.Version != "3.7-no.git" || seen.Dropped != 0 {
		t.Errorf("%+v", seen)
	}
}

func TestParseInvalid(t *testing.T) {
	for name, want := range map[string]string{
		"invalid-refused.json":   "iperf3 failed: unable to connect to server: Connection refused (check that the far end is running",
		"invalid-busy.json":      "iperf3 failed: the server is busy running a test",
		"invalid-killed.json":    "iperf3 failed: unable to write to stream socket: Connection reset by peer",
		"invalid-truncated.json": "the output of iperf3 is not complete JSON (2500 bytes)",
		"tcp-forward-2.json":     "",
	} {
		_, err := parseIperf(read(t, name))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
	}
	if _, err := parseIperf(nil); err == nil || !strings.Contains(err.Error(), "the output of iperf3 is empty") {
		t.Errorf("of nothing: %v", err)
	}
	if _, err := parseIperf([]byte(`{"start":{"version":"iperf 3.1"},"end":{"sum":{}}}`)); err == nil ||
		!strings.Contains(err.Error(), `the output of "iperf 3.1" has no sum_sent`) {
		t.Errorf("of an old one: %v", err)
	}
	for name, want := range map[string]string{
		"invalid-sockperf.txt":           "sockperf got no answer: No messages were received from the server",
		"invalid-sockperf-truncated.txt": "the output of sockperf has no median (900 bytes in total)",
	} {
		if _, err := parseSockperf(read(t, name)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
	}
}

func TestCounters(t *testing.T) {
	all := place.ParseTraffic(string(read(t, "dev.txt")))
	if len(all) != 2 || all["h5va"] != (place.Traffic{Received: 1511036325, Sent: 6546304177}) ||
		all["lo"] != (place.Traffic{}) {
		t.Errorf("%+v", all)
	}
	if all := place.ParseTraffic("x: 1 2\n:::\n"); len(all) != 0 {
		t.Errorf("of nonsense: %+v", all)
	}
}

func TestThrough(t *testing.T) {
	p, f := &place.Place{Name: "veth", Interface: "eth0"}, &flow{Bytes: 1e9}
	before := map[string]place.Traffic{"eth0": {}, "eth1": {}}
	ahead := part{protocol: tcp, direction: forward, streams: 1}
	if l := checkPath(p, ahead, f, before, map[string]place.Traffic{"eth0": {Sent: 1.01e9}}); l != nil {
		t.Errorf("on the right way: %v", l)
	}
	l := checkPath(p, ahead, f, before, map[string]place.Traffic{"eth0": {Received: 1e9, Sent: 3e6},
		"eth1": {Sent: 1.1e9}})
	if len(l) != 1 || l[0].Name != "path" || l[0].Where != "tcp forward 1 stream" ||
		!strings.Contains(l[0].Why, "3000000 went through eth0; eth1 had the most, 1100000000") {
		t.Errorf("on another way: %v", l)
	}
	back := part{protocol: tcp, direction: reverse, streams: 1}
	if l := checkPath(p, back, f, before, map[string]place.Traffic{"eth0": {Received: 1.01e9}}); l != nil {
		t.Errorf("back: %v", l)
	}
	if l := checkPath(&place.Place{}, back, f, before, before); l != nil {
		t.Errorf("where no interface is meant: %v", l)
	}
}

func TestDatagram(t *testing.T) {
	four, six := &place.Place{Address: netip.MustParseAddr("10.0.0.1")},
		&place.Place{Address: netip.MustParseAddr("fd00::1")}
	for _, c := range []struct {
		f    endMTUs
		to   *place.Place
		want int
	}{
		{endMTUs{1500, 1500}, four, 1472}, {endMTUs{1500, 9000}, four, 1472}, {endMTUs{9000, 9000}, six, 8952},
		{endMTUs{65536, 65536}, four, 65507},
		{endMTUs{0, 9000}, four, 8972}, {endMTUs{}, four, 1472}, {endMTUs{68, 68}, four, 64},
	} {
		if got := c.f.datagram(c.to); got != c.want {
			t.Errorf("%+v to %s: %d, want %d", c.f, c.to.Address, got, c.want)
		}
	}
	if l := (endMTUs{1500, 9000}).labels(); len(l) != 1 || l[0].Name != "mtu" {
		t.Errorf("of ends that do not agree: %v", l)
	}
}

// TestSeries: a flow of several seconds has a series. Outgoing UDP has none, because its values are
// those of the sender.
func TestSeries(t *testing.T) {
	f, err := parseIperf(read(t, "tcp-reverse.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.series) < 1 || math.Abs(f.series[0]/f.Received-1) > 0.2 {
		t.Fatalf("%v, of %g bit/s", f.series, f.Received)
	}
	f.series = []float64{1, 2}
	for _, c := range []struct {
		part part
		n    int
	}{{part{protocol: tcp, direction: forward}, 1}, {part{protocol: udp, direction: reverse}, 1},
		{part{protocol: udp, direction: forward}, 0},
		{part{protocol: udp, direction: reverse, packets: true}, 0}} {
		if got := c.part.series(f); len(got) != c.n {
			t.Errorf("%+v: %v", c.part, got)
		}
	}
}
