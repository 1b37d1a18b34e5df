package spec

import (
	"net/netip"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/service"
)

// TestAnswersOn: each host has the node there that answers, if it is live.
func TestAnswersOn(t *testing.T) {
	node := func(name, host, address string) site.Node {
		return site.Node{Name: name, Host: host, NICs: []site.NIC{{Network: "lan", Address: netip.MustParseAddr(address)}}}
	}
	s := &site.Site{
		Nodes: []site.Node{node("infra-a", "a", "10.1.0.11"), node("infra-b", "b", "10.1.0.12"),
			node("spare", "b", "10.1.0.13")},
		Active: []service.Active{
			{Name: "time", Kind: service.NTP, Network: "lan", Nodes: []string{"infra-a"}},
			{Name: "names", Kind: service.DNS, Network: "lan", Nodes: []string{"gone", "infra-a", "infra-b", "spare"}},
		},
	}
	for _, c := range []struct{ host, network, want string }{
		{"a", "lan", "dns>10.1.0.11,ntp>10.1.0.11"}, {"b", "lan", "dns>10.1.0.12"}, {"c", "lan", ""}, {"a", "other", ""},
	} {
		got := AnswersOn(s, c.host, c.network)
		if got != c.want {
			t.Errorf("host %s, network %s: %q", c.host, c.network, got)
		}
		if all, err := ParseAnswers(got); err != nil || (got != "") != (len(all) > 0) {
			t.Errorf("%q: %v, %v", got, all, err)
		}
	}
	s.Stage = 7
	if got := AnswersOn(s, "a", "lan"); got != "" {
		t.Errorf("in quarantine: %q", got)
	}
	for _, text := range []string{"x", ",", "dns>", "dns>10.1.0.1,", "ssh>10.1.0.1", "dns>fd00::1", "dns>10.1.0.1:53",
		">10.1.0.1"} {
		if all, err := ParseAnswers(text); err == nil {
			t.Errorf("%q is read as %v", text, all)
		}
	}
}
