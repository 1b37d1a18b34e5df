package net

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"orrery/internal/lab/test"
)

// from decodes options as an experiment does.
func from(text string) func(any) error {
	return func(options any) error {
		return toml.NewDecoder(strings.NewReader(text)).DisallowUnknownFields().Decode(options)
	}
}

func TestNew(t *testing.T) {
	n, err := New(from(""))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range n.Figures() {
		names = append(names, f.Name+" "+f.Unit)
	}
	want := []string{
		"tcp forward 1 stream bit/s", "tcp forward 5 streams bit/s", "tcp reverse 1 stream bit/s",
		"tcp reverse 5 streams bit/s",
		"udp forward 1 stream bit/s", "udp forward 1 stream loss 1", "udp forward 5 streams bit/s",
		"udp forward 5 streams loss 1",
		"udp reverse 1 stream bit/s", "udp reverse 1 stream loss 1", "udp reverse 5 streams bit/s",
		"udp reverse 5 streams loss 1",
		"packets forward 1/s", "packets reverse 1/s", "rtt median s", "rtt 99 % s",
	}
	if !slices.Equal(names, want) {
		t.Errorf("figures\n%q, want\n%q", names, want)
	}
	if needs := n.Needs(); !needs.Far || !slices.Equal(needs.Packages, []string{"iperf3", "sockperf"}) {
		t.Errorf("needs %+v", needs)
	}
	if got := n.Time(); got < 11*time.Second || got > 20*time.Second {
		t.Errorf("time %s", got)
	}
}

// TestLoss: the loss of a sender without a rate limit is shown, but not judged.
func TestLoss(t *testing.T) {
	for text, want := range map[string]test.Direction{
		`protocols = ["udp"]`: test.Neither, "protocols = [\"udp\"]\nrate = \"100Mbit/s\"": test.Less,
	} {
		n, err := New(from(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Figures()[1].Better; got != want {
			t.Errorf("%s: loss is %s, want %s", text, got, want)
		}
	}
}

func TestNeeds(t *testing.T) {
	n, err := New(from("protocols = []\npackets = false"))
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Needs().Packages; !slices.Equal(got, []string{"sockperf"}) {
		t.Errorf("of round trips only: %q", got)
	}
}

func TestInvalid(t *testing.T) {
	for text, want := range map[string]string{
		`protocols = ["sctp"]`:                       `protocols: "sctp" is unknown (write some of tcp, udp)`,
		`directions = ["both"]`:                      `directions: "both" is unknown (write some of forward, reverse)`,
		`protocols = ["tcp", "tcp"]`:                 "protocols: tcp is listed twice",
		"streams = [0]":                              "streams: 0 (write a number from 1 to 128)",
		"streams = [5, 5]":                           "streams: 5 is listed twice",
		`window = "1GiB"`:                            "window = 1G (write at most 512MiB, the limit of iperf3)",
		"seconds = 0":                                "seconds = 0 (write whole seconds, at least 1)",
		"port = 70000":                               "port = 70000",
		`rate = "fast"`:                              `"fast" is not a rate`,
		"streams = []\npackets = false\nrtt = false": "there is nothing to measure",
	} {
		if _, err := New(from(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestRate(t *testing.T) {
	for text, want := range map[string]test.Rate{"0": 0, "100Mbit/s": 1e8, "2.5 Gbit/s": 2.5e9, "64kbit/s": 64e3,
		"9600bit/s": 9600, "1e9": 1e9} {
		var r test.Rate
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "-1", "NaN", "Inf", "1e30", "5GB", "Mbit/s"} {
		if err := new(test.Rate).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is a rate", text)
		}
	}
}
