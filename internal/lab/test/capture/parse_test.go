package capture

import (
	"maps"
	"os"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/lab/search"
	"orrery/internal/lab/spead"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSpead2 parses the output of spead2 4.5.1 for a run at full speed over a veth, with loss.
func TestSpead2(t *testing.T) {
	sent, err := parseSent(read(t, "spead2_send"))
	if err != nil || sent.Bytes != 808536255 || sent.Rate < 37.9e9 || sent.Rate > 37.92e9 {
		t.Errorf("%+v, %v", sent, err)
	}
	got, err := parseReceived(read(t, "spead2_recv"))
	if err != nil || got.Heaps != 1873 || got.Packets != 348709 || got.Partial != 21 || got.Calls != 7559 {
		t.Errorf("%+v, %v", got, err)
	}
	if n := obtained(read(t, "spead2_recv.stderr"), 16<<20); n != 4194304 {
		t.Errorf("buffer of %d", n)
	}
	if n := obtained(nil, 16<<20); n != 16<<20 {
		t.Errorf("buffer of %d", n)
	}
	for _, text := range []string{"", "Killed", "Received x heaps"} {
		if _, err := parseReceived([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
		if _, err := parseSent([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	for _, c := range [][3]int{{262144, 1472, 184}, {1424, 1472, 1}, {1425, 1472, 2}, {1424 + 1432, 1472, 2},
		{1424 + 1433, 1472, 3}} {
		if n := packets(c[0], c[1]); n != c[2] {
			t.Errorf("a heap of %d bytes is %d packets of %d bytes, not %d", c[0], c[2], c[1], n)
		}
	}
}

func TestCounters(t *testing.T) {
	c := Counters{}
	c.softnet(read(t, "softnet_stat"))
	c.snmp(read(t, "snmp-and-dev"))
	c.devices("veth", read(t, "snmp-and-dev"))
	c.ethtool("eth1", read(t, "ethtool"))
	want := Counters{
		"softnet dropped": 0, "softnet squeezed": 3,
		"socket RcvbufErrors": 628199, "socket MemErrors": 0, "ip ReasmFails": 0, "ip InDiscards": 0,
		"link veth h3b rx_dropped": 0, "nic veth h3b rx_fifo": 0, "link veth h3b tx_dropped": 0,
		"nic eth1 ethtool rx_dropped": 0, "nic eth1 ethtool rx_missed_errors": 17, "nic eth1 ethtool rx_no_buffer_count": 4,
		"nic eth1 ethtool rx_queue_0_drops": 5, "nic eth1 ethtool rx_out_of_buffer": 6,
	}
	if !maps.Equal(c, want) {
		t.Errorf("got  %v\nwant %v", c, want)
	}
	if n := c.sum(atSoftnet); n != 0 {
		t.Errorf("%d packets in softnet: to be squeezed is not to be dropped", n)
	}
	later := maps.Clone(c)
	later["socket RcvbufErrors"] += 5
	later["link new"] = 9
	if d := later.since(c); !maps.Equal(d, Counters{"socket RcvbufErrors": 5}) {
		t.Errorf("since: %v", d)
	}
}

// TestNonsense: no content of the files makes a parser panic.
func TestNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`((Udp|Ip|eth0): ?[A-Za-z0-9 ]*\n|[0-9a-f ]*\n|[ -~]*\n)*`).Draw(t, "text"))
		c := Counters{}
		c.softnet(text)
		c.snmp(text)
		c.devices("x", text)
		c.ethtool("x", text)
		_, _ = parseSent(text)
		_, _ = parseReceived(text)
	})
}

// TestAutopsy: every lost packet is attributed to a place, as exactly as the counters permit.
func TestAutopsy(t *testing.T) {
	for name, c := range map[string]struct {
		sent, delivered, inWhole, dropped uint64
		counted                           Counters
		want                              map[string]uint64
	}{
		"socket": {1000, 900, 800, 100, Counters{"socket RcvbufErrors": 100},
			map[string]uint64{atSocket: 100, atApplication: 100}},
		"socket, together": {1000, 900, 900, 4, nil, map[string]uint64{atSocket: 100}},
		"softnet": {1000, 900, 900, 0, Counters{"softnet dropped": 100, "link veth0 tx_dropped": 100},
			map[string]uint64{atSoftnet: 100}},
		"two": {1000, 600, 600, 0, Counters{"nic eth1 rx_missed_errors": 300, "socket RcvbufErrors": 100},
			map[string]uint64{atNIC: 300, atSocket: 100}},
		"nobody knows":    {1000, 900, 900, 0, Counters{"softnet squeezed": 3}, map[string]uint64{atUnknown: 100}},
		"the application": {1000, 1000, 816, 0, nil, map[string]uint64{atApplication: 184}},
	} {
		d := locateDrops(spead.Sent{Packets: c.sent}, spead.Received{Packets: c.delivered, Dropped: c.dropped}, c.inWhole,
			c.counted)
		if !maps.Equal(d.Where, c.want) || d.Lost != c.sent-c.inWhole {
			t.Errorf("%s: %+v, want %v", name, d, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		sent := rapid.Uint64Max(1e9).Draw(t, "sent")
		delivered := rapid.Uint64Max(sent).Draw(t, "delivered")
		inWhole := rapid.Uint64Max(delivered).Draw(t, "in whole")
		counted := Counters{}
		for _, where := range []string{atNIC, atSoftnet, atLink, atIP, atSocket} {
			if n := rapid.Uint64Max(1e6).Draw(t, where); n%3 > 0 {
				counted[where+" RcvbufErrors"] = n
			}
		}
		var sum uint64
		for _, n := range locateDrops(spead.Sent{Packets: sent}, spead.Received{Packets: delivered}, inWhole, counted).Where {
			sum += n
		}
		if sum != sent-inWhole {
			t.Fatalf("%d packets of %d lost", sum, sent-inWhole)
		}
	})
}

// TestSenderWas: the sender is blamed only if nothing else limited the rate.
func TestSenderWas(t *testing.T) {
	c := made(t, func(*options) {})
	point := func(rate float64, sent, received uint64, valid bool) Point {
		return Point{Search: "search", Rate: rate, Achieved: rate, Sent: sent, Received: received, Valid: valid}
	}
	for name, x := range map[string]struct {
		points []Point
		capped bool
		blame  bool
	}{
		"loss above": {[]Point{point(1e9, 9, 9, true), point(1.01e9, 9, 8, true)}, false, false},
		"not reached above": {[]Point{point(1e9, 9, 9, true), point(1.01e9, 9, 9, false), point(1.02e9, 9, 8, true)},
			false, true},
		"loss and not reached":    {[]Point{point(1.01e9, 9, 9, false), point(1.01e9, 9, 8, true)}, false, false},
		"loss where not reached":  {[]Point{point(1.01e9, 9, 8, false)}, false, true},
		"nothing above was tried": {[]Point{point(1e9, 9, 9, true)}, true, true},
	} {
		r := &run{capture: c, points: x.points}
		if why := r.senderLimit(search.Result{Rate: 1e9, Capped: x.capped}); (why != "") != x.blame {
			t.Errorf("%s: %q", name, why)
		}
	}
}
