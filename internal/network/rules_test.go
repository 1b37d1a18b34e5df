package network

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"orrery/internal/site/spec"
)

var update = flag.Bool("update", false, "write what the tests find into testdata")

// TestRules shows the whole table of a site with a network of each kind.
func TestRules(t *testing.T) {
	golden(t, "testdata/rules.txt", rules([]spec.Network{cam, data, closed}))
}

// TestRouterRules shows the table of a twin that may reach the outside, and that of its router.
func TestRouterRules(t *testing.T) {
	n := routerOf("dev1", cam)
	golden(t, "testdata/router.txt", rules([]spec.Network{n, twinOf("dev1", closed)}))
	golden(t, "testdata/router_inside.txt", routerRules(n))
}

func golden(t *testing.T, path string, all []rule) {
	t.Helper()
	var b strings.Builder
	for _, r := range all {
		b.WriteString(r.chain + ": " + r.String() + "  # " + r.network + ": " + r.why + "\n")
	}
	if *update {
		must(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if b.String() != string(want) {
		t.Errorf("rules are\n%sinstead of\n%s", b.String(), want)
	}
}

func TestRulesDoNotDependOnTheOrderOfNetworks(t *testing.T) {
	a, b := ruleComments(rules([]spec.Network{cam, data, closed})), ruleComments(rules([]spec.Network{closed, data, cam}))
	if !slices.Equal(a, b) {
		t.Errorf("%q\nand\n%q", a, b)
	}
}

// TestEveryNetworkIsClosed checks that no packet that crosses a bridge's edge passes all rules of a
// network.
func TestEveryNetworkIsClosed(t *testing.T) {
	all := []spec.Network{cam, data, closed, venet, quiet, macvlanOn("w0"), nics}
	for _, n := range all {
		last := map[string]map[string]rule{forward: {}, input: {}}
		for _, r := range rules(all) {
			if r.in == nodeLink(n) && last[r.chain] != nil {
				last[r.chain]["in"] = r
			}
			if r.out == nodeLink(n) && last[r.chain] != nil {
				last[r.chain]["out"] = r
			}
		}
		want := rule{network: n.Name, chain: forward, why: "closed", verdict: drop}
		want.in = nodeLink(n)
		if got := last[forward]["in"]; got != want {
			t.Errorf("%s: the last rule for what leaves it is %s", n.Name, got)
		}
		want.in, want.out = linkMatch{}, nodeLink(n)
		if got := last[forward]["out"]; got != want {
			t.Errorf("%s: the last rule for what enters it is %s", n.Name, got)
		}
		want.chain, want.in, want.out = input, nodeLink(n), linkMatch{}
		if got := last[input]["in"]; got != want {
			t.Errorf("%s: the last rule for what goes to the host is %s", n.Name, got)
		}
	}
}

func TestCommentsTellRulesApart(t *testing.T) {
	other := cam
	other.Subnet = "10.8.70.0/24"
	a, b := ruleComments(rules([]spec.Network{cam})), ruleComments(rules([]spec.Network{other}))
	if slices.Equal(a, b) {
		t.Error("another subnet gives the same comments")
	}
	for _, c := range a {
		if len(c) > 127 { // limit of nft(8)
			t.Errorf("comment too long: %s", c)
		}
	}
	masqueraded, known := parseComments(a)
	if !masqueraded["cam"] || !known["cam"] || len(known) != 1 {
		t.Errorf("read back: %v %v", masqueraded, known)
	}
}

func TestMark(t *testing.T) {
	for _, n := range []spec.Network{cam, data, closed, routerOf("dev1", cam)} {
		want := n
		want.MTU = 0
		if got, ok := readMark(mark(n)); !ok || got != want {
			t.Errorf("mark %q reads %+v", mark(n), got)
		}
		former := strings.Replace(mark(n), " router", " outlet", 1) // in the format of former versions
		if got, ok := readMark(former); !ok || got != want {
			t.Errorf("mark %q reads %+v", former, got)
		}
	}
	for _, alias := range []string{
		"", "orrery", "orrery karoo cam 10.8.67.0/24 - - -", "uplink karoo cam 10.8.67.0/24 - -",
		"orrery karoo cam ten - -", "orrery karoo cam 10.8.67.0/24 ten nat",
	} {
		if n, ok := readMark(alias); ok {
			t.Errorf("alias %q reads %+v", alias, n)
		}
	}
}

func TestTableName(t *testing.T) {
	for site, want := range map[string]string{
		"karoo": "orrery-karoo", "sv1.karoo": "orrery-sv1.karoo",
		"a b": "orrery-digest-c8687a08aa5d6ed2044328fa", strings.Repeat("x", 101): "orrery-digest-",
	} {
		if got := tableName(site); !strings.HasPrefix(got, want) || len(got) > 110 {
			t.Errorf("site %q: table %s", site, got)
		}
	}
}
