package network

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// answering returns a network with active services.
func answering(n spec.Network, answers string) spec.Network {
	n.Answers = answers
	return n
}

// TestAnswerRules shows the table of a site with active services, and that of a twin's router that leads nowhere
// else.
func TestAnswerRules(t *testing.T) {
	golden(t, "testdata/answers.txt", rules([]spec.Network{answering(data, "dns>10.8.68.9,ntp>10.8.68.10")}))
	n := answering(routerOf("dev1", data), "dns>10.8.68.9")
	n.NAT = false
	golden(t, "testdata/answers_inside.txt", routerRules(n))
}

// TestAnswersInMemory: what nodes of a network send to a service at its gateway's address is translated, and
// nothing else is. Only that reaches the node through the host.
func TestAnswersInMemory(t *testing.T) {
	links := map[string]string{"cam": cam.Bridge, "data": data.Bridge}
	all := rules([]spec.Network{cam, answering(data, "dns>10.8.68.9,ntp>10.8.68.10")})
	table := inMemory(all)
	for _, c := range []struct{ what, way, want string }{
		{"a name", "data host 10.8.68.11 10.8.68.1 udp/53", "10.8.68.9"},
		{"a name over TCP", "data host 10.8.68.11 10.8.68.1 tcp/53", "10.8.68.9"},
		{"the time", "data host 10.8.68.11 10.8.68.1 udp/123", "10.8.68.10"},
		{"a name, of the node with the time", "data host 10.8.68.10 10.8.68.1 udp/53", "10.8.68.9"},
		{"a name, of the node that answers", "data host 10.8.68.9 10.8.68.1 udp/53", ""},
		{"the time over TCP", "data host 10.8.68.11 10.8.68.1 tcp/123", ""},
		{"another port", "data host 10.8.68.11 10.8.68.1 udp/54", ""},
		{"at another address of the host", "data host 10.8.68.11 192.0.2.98 udp/53", ""},
		{"at another machine", "data eth0 10.8.68.11 192.0.2.1 udp/53", ""},
		{"with a forged source", "data host 10.8.67.9 10.8.68.1 udp/53", ""},
		{"of another network", "cam host 10.8.67.9 10.8.68.1 udp/53", ""},
		{"of another network, at its own gateway", "cam host 10.8.67.9 10.8.67.1 udp/53", ""},
		{"from outside", "eth0 host 192.0.2.1 10.8.68.1 udp/53", ""},
		{"from outside, with a forged source", "eth0 host 10.8.68.11 10.8.68.1 udp/53", ""},
		{"over IPv6", "data host fd00::11 fd00::1 udp/53", ""},
	} {
		p := packet{way: c.way}.seen(links)
		got := ""
		if to := table.Run(publish, p).To; to.IsValid() {
			got = strings.TrimSuffix(to.String(), ":0")
		}
		if got != c.want {
			t.Errorf("%s: it leads to %q, not %q", c.what, got, c.want)
		}
	}
	send(t, all, links, []packet{
		{"asked", "data data 10.8.68.11 10.8.68.9 udp/53 translated", "masquerade", nil},
		{"asked, as br_netfilter shows it within", "data data 10.8.68.11 10.8.68.9 udp/53", "untracked", nil},
		{"asked, too often", "data data 10.8.68.11 10.8.68.9 udp/53 translated over", "drop", nil},
		{"of another network", "cam data 10.8.67.9 10.8.68.9 udp/53 translated", "drop", nil},
		{"from outside", "eth0 data 192.0.2.1 10.8.68.9 udp/53 translated", "drop", nil},
		{"an answer to another network", "data cam 10.8.68.9 10.8.67.9 udp/40000 translated established", "drop", nil},
		{"not translated", "data host 10.8.68.9 10.8.68.1 udp/53", "drop", nil},
	})
}

// TestAnswersMark: the alias of a link has the active services of its network, so a table can be rewritten from
// aliases alone.
func TestAnswersMark(t *testing.T) {
	inside := answering(routerOf("dev1", data), "dns>10.8.68.9")
	inside.NAT = false
	for _, n := range []spec.Network{answering(cam, "dns>10.8.67.9,ntp>10.8.67.9"), inside} {
		n.MTU = 0
		if got, ok := readMark(mark(n)); !ok || got != n {
			t.Errorf("mark %q reads %+v", mark(n), got)
		}
	}
}

// TestAnswersHostile: what a step says of active services is checked before anything is changed.
func TestAnswersHostile(t *testing.T) {
	for what, list := range map[string]string{
		"no list": "x", "unknown": "ssh>10.8.68.9", "outside": "dns>10.8.69.1", "the gateway": "dns>10.8.68.1",
		"IPv6": "dns>fd00::1", "loopback": "ntp>127.0.0.1", "empty": "dns>10.8.68.9,",
	} {
		if err := check(answering(data, list)); !problem.Is(err, problem.Unable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := check(answering(closed, "dns>10.8.69.9")); !problem.Is(err, problem.Unable) {
		t.Errorf("without a gateway: %v", err)
	}
	if err := check(answering(data, "dns>10.8.68.9,ntp>10.8.68.9")); err != nil {
		t.Error(err)
	}
}

// TestAnswers: nodes reach an active service at their gateway's address, which asks in their place; other
// networks, other machines and forged packets do not. A new node takes over for clients that go on asking.
//
// Promise (Networks): An active service answers only nodes of its network, at the gateway's address there. What
// a step says of it is checked. With network.TestAnswersInMemory, network.TestAnswersHostile,
// test.TestActiveServices.
func TestAnswers(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	ctx := t.Context()
	lan := answering(data, "dns>10.8.68.9")
	must(t, Make(ctx, cam, noNodes))
	must(t, Make(ctx, lan, noNodes))
	infra := newPlace(t, "orv1", "10.8.68.9/24", "10.8.68.1")
	infra.join(t, lan.Bridge)
	client := newPlace(t, "orv2", "10.8.68.11/24", "10.8.68.1")
	client.join(t, lan.Bridge)
	stranger := newPlace(t, "orv3", "10.8.67.9/24", "10.8.67.1")
	stranger.join(t, cam.Bridge)
	colleague := newPlace(t, "up0", "192.0.2.1/24", "192.0.2.99")
	addAddress(t, "up0", "192.0.2.99/24")
	for _, proto := range []string{"udp", "tcp"} {
		infra.serve(t, proto, "10.8.68.9:53")
		infra.serve(t, proto, "10.8.68.9:54")
	}

	same(t, []spec.Network{cam, lan})
	for _, proto := range []string{"udp", "tcp"} {
		client.gets(t, proto, "10.8.68.1:53", "10.8.68.1")
		client.gets(t, proto, "10.8.68.9:53", "10.8.68.11")
	}
	client.gets(t, "udp", "10.8.68.1:54", "")
	stranger.gets(t, "udp", "10.8.68.1:53", "")
	stranger.gets(t, "udp", "10.8.67.1:53", "")
	stranger.gets(t, "tcp", "10.8.68.9:53", "")
	colleague.gets(t, "udp", "10.8.68.1:53", "")
	colleague.gets(t, "udp", "10.8.68.9:53", "")

	must(t, Make(ctx, data, noNodes))
	same(t, []spec.Network{cam, data})
	client.gets(t, "udp", "10.8.68.1:53", "")
	must(t, Remove(ctx, cam))
	must(t, Make(ctx, lan, noNodes))
	must(t, Remove(ctx, lan))
	if all, err := tables(); err != nil || len(all) > 0 {
		t.Errorf("tables are left: %v, %v", all, err)
	}
}

// TestAnswersFlows: a change of the node that answers redirects clients that go on asking from the same port.
func TestAnswersFlows(t *testing.T) {
	first, second := answering(data, "dns>10.8.68.9,ntp>10.8.68.9"), answering(data, "dns>10.8.68.9,ntp>10.8.68.10")
	for _, c := range []struct {
		before, after spec.Network
		want          []uint16
	}{
		{first, first, nil}, {first, second, []uint16{123, 123}}, {data, first, []uint16{53, 123}},
		{second, data, []uint16{53, 123}},
	} {
		var got []uint16
		for _, p := range changedAnswers(c.before, c.after) {
			got = append(got, p.First)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("from %q to %q: %v", c.before.Answers, c.after.Answers, got)
		}
	}
}

// TestAnswersOfTwin: nodes of a twin that leads nowhere reach its active service at the gateway's address.
func TestAnswersOfTwin(t *testing.T) {
	if !sandbox(t) {
		return
	}
	outside := world(t)
	must(t, Make(t.Context(), data, noNodes))
	n := answering(routerOf("dev1", data), "dns>10.8.68.9")
	n.NAT = false
	must(t, Make(t.Context(), n, noNodes))
	infra, client := newNode(t, n, "orv1", "10.8.68.9/24"), newNode(t, n, "orv2", "10.8.68.11/24")
	original := newNode(t, data, "orv3", "10.8.68.11/24")
	infra.serve(t, "udp", "10.8.68.9:53")
	client.gets(t, "udp", "10.8.68.1:53", "10.8.68.1")
	original.gets(t, "udp", "10.8.68.1:53", "")
	client.misses(t, "192.0.2.2")
	outside.misses(t, "10.8.68.9")
	same(t, []spec.Network{n})
	must(t, Remove(t.Context(), n))
	must(t, Remove(t.Context(), data))
}
