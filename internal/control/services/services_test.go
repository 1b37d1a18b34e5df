package services

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/service"
)

// TestParseNode: a node may print anything.
func TestParseNode(t *testing.T) {
	for out, want := range map[string]Node{
		"has\nactive\n0\nMASTER 100\n": {Has: true, State: Master, Since: time.Unix(100, 0)},
		"free\nactive\n3\nBACKUP 100":  {State: Backup, Since: time.Unix(100, 0), Flaps: 3},
		"free\nended\n":                {Error: "keepalived is not running"},
		"has\nended\n0\nMASTER 100": {Has: true, State: Master,
			Since: time.Unix(100, 0), Error: "keepalived is not running"},
		"":                           {},
		"has":                        {Has: true},
		"free\nactive\n0\n\x1b[2J 1": {Since: time.Unix(1, 0)},
		"free\nactive\n0\nFAULT 99999999999999999":  {State: Fault},
		"free\nactive\n0\nFAULT -5":                 {State: Fault},
		"free\nactive\n0\nMASTER":                   {State: Master},
		"free\nactive\n9999999\nMASTER":             {State: Master, Flaps: maxFlaps},
		"free\nactive\n-3\nMASTER":                  {State: Master},
		"free\nactive\n99999999999999999999\nFAULT": {State: Fault},
		strings.Repeat("x", 4096):                   {},
		"free\nactive\n0\nBACKUP 7\nanother line\n": {State: Backup, Since: time.Unix(7, 0)},
	} {
		if got := parseNode(Node{}, out); got != want {
			t.Errorf("%.40q: %+v instead of %+v", out, got, want)
		}
	}
}

// TestFind: an unknown name is reported with the nearest one.
func TestFind(t *testing.T) {
	s := &site.Site{Name: "karoo"}
	if _, err := find(s, "portal"); err == nil || !strings.Contains(err.Error(), "has no services") {
		t.Error(err)
	}
	s.Services = []service.Service{{Name: "portal"}}
	if v, err := find(s, "portal"); err != nil || v.Name != "portal" {
		t.Error(v, err)
	}
	s.Active = []service.Active{{Name: "names"}}
	if _, err := find(s, "names"); !problem.Is(err, problem.Usage) || !strings.Contains(err.Error(), "does not move") {
		t.Error(err)
	}
	if _, err := find(s, "protal"); !problem.Is(err, problem.Usage) || !strings.Contains(err.Error(), `"portal"`) {
		t.Error(err)
	}
}

// TestHolder: none and two holders are reported with what the nodes say.
func TestHolder(t *testing.T) {
	now := &Service{Name: "portal", Address: "10.1.0.5",
		Nodes: []Node{{Node: "a", State: Fault}, {Node: "b", Error: "not running"}}}
	if _, err := holder(now); err == nil || !strings.Contains(err.Error(), "a: FAULT, b: not running") {
		t.Error(err)
	}
	now.Holders = []string{"a", "b"}
	if _, err := holder(now); err == nil || !strings.Contains(err.Error(), "a and b have") {
		t.Error(err)
	}
	now.Holders = []string{"b"}
	if name, err := holder(now); err != nil || name != "b" {
		t.Error(name, err)
	}
}

// TestActive: an active service is healthy if all of its nodes run.
func TestActive(t *testing.T) {
	s := &site.Site{Name: "karoo", Networks: []site.Network{{Name: "lan", Gateway: netip.MustParseAddr("10.1.0.1")}}}
	a := service.Active{Name: "names", Kind: service.DNS, Network: "lan", Nodes: []string{"infra-a", "infra-b"}}
	runners := map[string]host.Runner{"infra-a": host.Local{}}
	got := active(runners, s, &a)
	if got.Address != "10.1.0.1" || !slices.Equal(got.Holders, []string{"infra-a"}) || got.Healthy() ||
		got.Nodes[1].Error != "not running" {
		t.Errorf("%+v", got)
	}
	runners["infra-b"] = host.Local{}
	if got := active(runners, s, &a); !got.Healthy() || len(got.Holders) != 2 {
		t.Errorf("%+v", got)
	}
}
