package test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine/lxc"
	"orrery/internal/image"
	"orrery/internal/observe"
	model "orrery/internal/site"
)

const greeterRole = `
services = ["greeter.service"]
[[file]]
path = "/usr/local/bin/greeter.py"
source = "greeter.py"
[[file]]
path = "/etc/systemd/system/greeter.service"
content = """
[Service]
ExecStart=/usr/bin/python3 /usr/local/bin/greeter.py
[Install]
WantedBy=multi-user.target
"""
[[health]]
tcp = 7000
within = "20s"
`

func greeterSays(text string) string {
	return `
import socket
l = socket.create_server(("", 7000), backlog=128)
while True:
    c = l.accept()[0]
    c.sendall(b"` + text + `\n")
    c.close()
`
}

// released is a site with a role that has two editions, and a role with data that only one node can
// have.
func released() files {
	all := maps.Clone(ledger)
	all["roles/greeter/role.toml"], all["roles/greeter/greeter.py"] = greeterRole, greeterSays("one")
	all["roles/greeter2/role.toml"], all["roles/greeter2/greeter.py"] = greeterRole, greeterSays("two")
	return all
}

const releasedSite = `
[network.lan]
subnet = "10.99.%[1]d.0/24"
gateway = "10.99.%[1]d.1"
nat = true
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
[node."web{0..1}"]
id = 101
roles = ["greeter"]
[node.store]
id = 110
roles = ["ledger"]
[release.700]
notes = "first"
[release.701]
notes = "second"
[release.701.roles]
greeter = "greeter2"
`

func newReleased(t *testing.T, name string, net int) *site {
	t.Helper()
	return newSite(t, name, fmt.Sprintf(releasedSite, net), released())
}

// instances returns the instances of the site's nodes, by name and release. Their bridges are read
// from the kernel.
func (s *site) instances() map[string]map[int]observe.Node {
	s.Helper()
	list, err := lxc.New(s.dirs, image.Open(s.dirs.State)).List(s.Context(), s.name)
	if err != nil {
		s.Fatal(err)
	}
	all := map[string]map[int]observe.Node{}
	for _, n := range list {
		if all[n.Name] == nil {
			all[n.Name] = map[int]observe.Node{}
		}
		all[n.Name][n.Release] = n
	}
	return all
}

// inits returns the process ids of the first processes of all instances, by id, so that a restart
// can be detected.
func (s *site) inits() map[string]string {
	all := map[string]string{}
	for _, path := range glob(s.dirs.Nodes(s.name) + "/*/pid") {
		monitor, _ := os.ReadFile(path)
		pid := strings.TrimSpace(string(monitor))
		children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		all[filepath.Base(filepath.Dir(path))] = strings.TrimSpace(string(children))
	}
	return all
}

// onLive returns, for each node, the releases of the instances that have all links on the live
// networks, and of those that have some.
func (s *site) onLive() (whole, partly map[string][]int) {
	s.Helper()
	whole, partly = map[string][]int{}, map[string][]int{}
	for name, of := range s.instances() {
		for _, release := range slices.Sorted(maps.Keys(of)) {
			n, linked := of[release], 0
			for _, nic := range n.NICs {
				if n.State != observe.Stopped && nic.Bridge == model.BridgeName(s.name, nic.Network) {
					linked++
				}
			}
			switch {
			case linked == 0:
			case linked == len(n.NICs):
				whole[name] = append(whole[name], release)
			default:
				partly[name] = append(partly[name], release)
			}
		}
	}
	return whole, partly
}

// wantLive wants that of each node exactly the instance of a release is on the live networks, that
// only it writes to the volume, that none is frozen, and that nothing is left to do.
func (s *site) wantLive(release int, nodes ...string) {
	s.Helper()
	if len(nodes) == 0 {
		nodes = []string{"web0", "web1", "store"}
	}
	whole, partly := s.onLive()
	for _, name := range nodes {
		if !slices.Equal(whole[name], []int{release}) || len(partly[name]) > 0 {
			s.Errorf("node %s is on the live networks at releases %v, partly at %v, and not at %d alone", name, whole[name],
				partly[name], release)
		}
	}
	for name, of := range s.instances() {
		for _, n := range of {
			if n.State == observe.Frozen {
				s.Errorf("node %s of release %d is frozen", name, n.Release)
			}
		}
	}
	if slices.Contains(nodes, "store") {
		s.wantWriter("store", fmt.Sprint(model.FullID(release, 110)))
		if got := s.sh("store", "systemctl is-active ledger.service only.service || true"); got != "active\nactive" {
			s.Errorf("services of the live store are %q", got)
		}
	}
	s.settled()
}

// in runs a script in a node of a release that is in quarantine.
func (s *site) in(release int, node, script string) string {
	s.Helper()
	return strings.TrimSpace(s.do("shell", "--release", fmt.Sprint(release), node, "--", "/bin/sh", "-c", script))
}

// A caller requests an address with pauses of 10 ms, as long as it is wanted.
type caller struct {
	said    []string      // answers that differ from the previous one
	longest time.Duration // without an answer
}

// call sends requests until the returned function is called, which returns the results.
func call(address string) (end func() caller) {
	stop, result := make(chan struct{}), make(chan caller)
	go func() {
		var c caller
		var away time.Duration // since the last answer
		for {
			asked := time.Now()
			text, err := greeting(address)
			// A longer time is a delay of this client itself, on a busy machine.
			away += min(time.Since(asked), attempt)
			if err == nil && text != "" {
				c.longest = max(c.longest, away)
				away = 0
				if len(c.said) == 0 || c.said[len(c.said)-1] != text {
					c.said = append(c.said, text)
				}
			}
			select {
			case <-stop: // after it has received the current answer
				if away == 0 || away > 10*time.Second {
					c.longest = max(c.longest, away)
					result <- c
					return
				}
			default:
			}
			time.Sleep(pause)
			away += pause
		}
	}()
	return func() caller { close(stop); return <-result }
}

// pause is between two requests of a client. attempt is more than the time that greeting takes,
// whatever the peer does.
const pause, attempt = 10 * time.Millisecond, 400 * time.Millisecond

func greeting(address string) (string, error) {
	c, err := net.DialTimeout("tcp4", address, 100*time.Millisecond)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(100 * time.Millisecond))
	text, err := io.ReadAll(c)
	return strings.TrimSpace(string(text)), err
}

// greeted is like greeting, with retries for a busy machine.
func greeted(address string) (text string, err error) {
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if text, err = greeting(address); err == nil && text != "" {
			break
		}
	}
	return text, err
}

// unanswered is how long a client may be without an answer during a switch, on a machine with other
// work. bench measures it.
const unanswered = 2 * time.Second

// calling runs the program while clients call both greeters of a site. The greeters must give
// exactly these answers, in this order, and never be away for long.
func (s *site) calling(net int, says []string, args ...string) result {
	s.Helper()
	clients := []func() caller{call(fmt.Sprintf("10.99.%d.101:7000", net)), call(fmt.Sprintf("10.99.%d.102:7000", net))}
	s.eventually(func() error {
		_, err := greeting(fmt.Sprintf("10.99.%d.102:7000", net))
		return err
	})
	r := s.run(args...)
	for i, end := range clients {
		// The last answer may not have arrived yet.
		s.eventually(func() error {
			text, err := greeting(fmt.Sprintf("10.99.%d.%d:7000", net, 101+i))
			return cmp.Or(err, is(text, says[len(says)-1]))
		})
		c := end()
		if !slices.Equal(c.said, says) {
			s.Errorf("orrery %s: the client of web%d heard %v, want %v", strings.Join(args, " "), i, c.said, says)
		}
		if c.longest > unanswered {
			s.Errorf("orrery %s: the client of web%d had no answer for %s", strings.Join(args, " "), i, c.longest)
		}
		s.Logf("orrery %s: web%d away for %s", strings.Join(args, " "), i, c.longest.Round(time.Millisecond))
	}
	return r
}

func is(got, want string) error {
	if got != want {
		return fmt.Errorf("%q, not %q", got, want)
	}
	return nil
}

func TestRelease(t *testing.T) {
	s := newReleased(t, "it-release", 100)
	s.edit("site.toml", "[image.debian]", "[network.data]\nsubnet = \"10.99.101.0/24\"\n[image.debian]")
	s.do("up")
	s.run("stage", "--release", "701").
		want(0, `web0 +701101 .*701 \(quarantine\) +running +(was )?healthy`, "orrery switch --release 701")
	s.settled()
	s.run("stage", "--release", "701").want(0, "nothing to do")
	releaseQuarantine(s)
	s.run("plan", "--probe").want(0, "nothing to do")
	releaseSwitch(s)
	s.run("plan", "--probe").want(0, "nothing to do") // live-only services match their declaration, too
	releaseLookedAt(s)
	releaseUnchanged(s)
	releaseBack(s)
	releasePruned(s)
	releaseDown(s)
}

// releaseQuarantine: both releases run at once and are the same, and other nodes only reach the
// live one.
func releaseQuarantine(s *site) {
	s.Helper()
	for _, node := range []string{"web0", "web1", "store"} {
		const who = "ip -4 -o addr show | grep -o 'eth.*inet [0-9./]*'; cat /sys/class/net/eth*/address /etc/machine-id /etc/hostname"
		if live, staged := s.sh(node, who), s.in(701, node, who); live != staged {
			s.Errorf("%s is\n%s\nand in quarantine\n%s", node, live, staged)
		}
	}
	for _, to := range []string{"web1", "10.99.100.102", "10.99.101.102"} {
		ask := "exec bash -c 'exec 3<>/dev/tcp/" + to + "/7000; cat <&3'"
		if live, staged := s.sh("web0", ask), s.in(701, "web0", ask); live != "one" || staged != "two" {
			s.Errorf("%s says %q, and in quarantine %q", to, live, staged)
		}
	}
	for _, to := range []string{"10.99.100.1", s.world()} {
		ping := []string{"web0", "--", "ping", "-n", "-c", "1", "-W", "1", to}
		s.run(append([]string{"shell"}, ping...)...).want(0)
		if s.run(append([]string{"shell", "--release", "701"}, ping...)...).status == 0 {
			s.Errorf("the quarantine reaches %s", to)
		}
	}
	releaseUnheard(s)
	for _, c := range []struct{ live, script, want string }{
		{"live", "systemctl is-active only.service || true", "active"},
		{"", "systemctl is-active only.service || true", "inactive"},
		{"live", "cat /srv/data/active", "none"},
		{"", "cat /srv/data/active", "none"}, // a copy of that
		{"", "touch /srv/data/x; systemctl is-active ledger.service", "active"},
		{"live", "ls /srv/data", "active\nledger"},
	} {
		run := func(node, script string) string { return s.in(701, node, script) }
		if c.live != "" {
			run = s.sh
		}
		if got := run("store", c.script); got != c.want {
			s.Errorf("%q gives %q, want %q (%s)", c.script, got, c.want, c.live)
		}
	}
	s.wantWriter("store", "110")
	s.lines("store")
}

// releaseUnheard: nothing that the quarantine sends is on the live networks. Both have the same
// addresses, so frames are recognised by their content.
func releaseUnheard(s *site) {
	s.Helper()
	frames := []func() [][]byte{s.capture(s.name, "lan"), s.capture(s.name, "data")}
	const talk = `
for i in 1 2 3; do
	ip neigh replace 10.99.100.1 lladdr $(cat /sys/class/net/eth0/address | sed s/^../02/) dev eth0
	for to in 10.99.100.1 10.99.100.102 10.99.101.102 10.99.100.255 10.99.101.255 192.0.2.9; do
		ping -n -b -c 1 -W 0.1 -p %s $to >/dev/null 2>&1
	done
done; ip neigh del 10.99.100.1 dev eth0; true`
	s.in(701, "web0", fmt.Sprintf(talk, "deadbeef"))
	s.sh("web0", fmt.Sprintf(talk, "0b1e55ed"))
	for i, frames := range frames {
		seen := map[string]int{}
		for _, frame := range frames() {
			for _, mark := range []string{"\x0b\x1e\x55\xed", "\xde\xad\xbe\xef"} {
				if bytes.Contains(frame, []byte(mark+mark)) {
					seen[fmt.Sprintf("%x", mark)]++
				}
			}
		}
		if seen["0b1e55ed"] == 0 || len(seen) != 1 {
			s.Errorf("frames on live network %d, by what is in them: %v", i, seen)
		}
	}
}

// releaseSwitch: the set switches as a whole, with its data, and nothing is restarted.
func releaseSwitch(s *site) {
	s.Helper()
	before, lines := s.inits(), s.lines("store")
	s.calling(100, []string{"one", "two"}, "switch", "--release", "701").
		want(0, "3 nodes at release 701, formerly none", "orrery rollback")
	if after := s.inits(); !maps.Equal(before, after) {
		s.Errorf("first processes were %v and are %v", before, after)
	}
	s.wantLive(701)
	s.wantKept("store", lines)
	if got := s.sh("store", "cat /srv/data/active; systemctl is-active only.service ledger.service; ls /srv/data"); got != "none\n701\nactive\nactive\nactive\nledger" {
		s.Errorf("on the live store: %q", got)
	}
	if got := s.in(0, "store", "systemctl is-active only.service ledger.service; ls /srv/data"); got != "inactive\ninactive" {
		s.Errorf("on the former store: %q", got)
	}
	s.run("switch", "--release", "701").want(0, "release 701 is already live")
}

type releaseLine struct {
	Number                   int
	Live, Quarantine         []string
	Former, Trial, Confirmed bool
	Declared                 bool
	Notes, Who, Staged       string
}

func (s *site) releases() map[int]releaseLine {
	s.Helper()
	var all []releaseLine
	if err := json.Unmarshal(replied(s.do("release", "ls", "--json")), &all); err != nil {
		s.Fatal(err)
	}
	by := map[int]releaseLine{}
	for _, r := range all {
		by[r.Number] = r
	}
	return by
}

// releaseLookedAt: the commands report releases correctly.
func releaseLookedAt(s *site) {
	s.Helper()
	releases := s.releases()
	if r := releases[701]; len(r.Live) != 3 || len(r.Quarantine) != 0 || r.Notes != "second" || r.Who == "" ||
		!r.Confirmed ||
		r.Former {
		s.Errorf("release 701: %+v", r)
	}
	if r := releases[0]; len(r.Live) != 0 || len(r.Quarantine) != 3 || !r.Former {
		s.Errorf("what is of no release: %+v", r)
	}
	if r := releases[700]; len(r.Live)+len(r.Quarantine) != 0 || !r.Declared {
		s.Errorf("release 700: %+v", r)
	}
	s.run("release", "ls").want(0, `(?m)^none +former `, `(?m)^701 +live, confirmed +3 +0 .*second`, `(?m)^700 +declared`)
	var show []struct {
		Node     string
		ID       int
		Content  []string
		Packages map[string]string
	}
	if err := json.Unmarshal(replied(s.do("release", "show", "701", "web0", "--json")), &show); err != nil ||
		len(show) != 1 {
		s.Fatalf("%v: %+v", err, show)
	}
	installed := map[string]string{}
	for _, line := range strings.Split(s.sh("web0", `dpkg-query -W -f '${Package} ${Version}\n'`), "\n") {
		name, version, _ := strings.Cut(line, " ")
		installed[name] = version
	}
	if show[0].ID != 701101 || len(show[0].Content) != 2 || !maps.Equal(installed, show[0].Packages) {
		s.Errorf("release show: %d %v, %d packages of %d", show[0].ID, show[0].Content, len(show[0].Packages), len(installed))
	}
	s.run("release", "show", "700").want(3, "release 700 has no nodes", "orrery stage --release 700")
	s.run("release", "diff", "0", "701").
		want(0, `(?s)web0, web1:\n  \S`, `store:\n  the same`)
	s.run("release", "diff", "0", "701", "store").want(0, `\Astore:\n  the same\n\z`)
	var differ []struct {
		Node  string   `json:"node"`
		Lines []string `json:"lines"`
	}
	if err := json.Unmarshal(replied(s.do("release", "diff", "0", "701", "web0", "--json")), &differ); err != nil ||
		len(differ) != 1 || differ[0].Node != "web0" || len(differ[0].Lines) == 0 {
		s.Errorf("release diff: %+v %v", differ, err)
	}
}

// releaseUnchanged: nothing changes under a live release, whatever happens to the site directory.
func releaseUnchanged(s *site) {
	s.Helper()
	s.edit("roles/greeter2/greeter.py", "two", "three")
	s.edit("roles/greeter/greeter.py", "one", "zero")
	s.edit("roles/ledger/role.toml", "within = \"20s\"", "within = \"21s\"")
	s.run("plan").want(0)
	s.run("stage", "--release", "701").
		want(3, "release 701 of node .* is live and cannot be changed", "another release")
	s.run("plan").want(0)
	s.edit("roles/greeter2/greeter.py", "three", "two")
	s.edit("roles/greeter/greeter.py", "zero", "one")
	s.edit("roles/ledger/role.toml", "within = \"21s\"", "within = \"20s\"")
}

// steps returns the steps of the last run.
func (s *site) steps() []string {
	s.Helper()
	var all []struct{ Kind, Step, Who string }
	if err := json.Unmarshal(replied(s.do("journal", "--json", "-n", "1")), &all); err != nil {
		s.Fatal(err)
	}
	var steps []string
	for _, e := range all {
		if e.Kind == "step" {
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// releaseBack: back and forth, with the data, and nothing is rebuilt or restarted.
func releaseBack(s *site) {
	s.Helper()
	before, lines := s.inits(), s.lines("store")
	s.calling(100, []string{"two", "one"}, "rollback").want(0, "3 nodes at release none, formerly 701")
	for _, step := range s.steps() {
		if strings.HasPrefix(step, "build") || strings.HasPrefix(step, "create") || strings.HasPrefix(step, "start") {
			s.Errorf("rollback did: %s", step)
		}
	}
	s.wantLive(0)
	s.wantKept("store", lines)
	s.run("rollback").want(3, "no former release", "orrery release ls")
	if after := s.inits(); !maps.Equal(before, after) {
		s.Errorf("first processes were %v and are %v", before, after)
	}
	s.calling(100, []string{"one", "two"}, "switch", "--release", "701").want(0) // forward again, without staging it
	s.wantLive(701)
	s.wantKept("store", lines)
	s.calling(100, []string{"two", "one"}, "rollback").want(0)
	s.wantLive(0)
	s.wantKept("store", lines)
	if got := s.sh("store", "cat /srv/data/active"); got != "none\n701\nnone\n701\nnone" {
		s.Errorf("active steps: %q", got)
	}
	s.do("stage", "--release", "701") // so that it has copies of its volumes again
	s.do("switch", "--release", "701")
}

// releasePruned: live, former and confirmed releases stay, whatever is requested.
func releasePruned(s *site) {
	s.Helper()
	s.do("stage", "--release", "700")
	s.run("release", "prune", "--keep", "1").want(0, "nothing to prune")
	s.run("release", "prune", "--keep", "0").want(0, `3 nodes of releases removed \(700\)`)
	s.run("release", "prune", "--keep", "0").want(0, "nothing to prune")
	releases := s.releases()
	if len(releases[701].Live) != 3 || len(releases[0].Quarantine) != 3 || releases[700].Staged != "0001-01-01T00:00:00Z" {
		s.Errorf("after pruning: %+v", releases)
	}
	if left := glob(s.dirs.Release(s.name, 700), s.dirs.Nodes(s.name)+"/700*"); len(left) > 0 {
		s.Errorf("left of release 700: %v", left)
	}
	s.wantLive(701)
	s.do("rollback")
	s.run("release", "prune", "--keep", "0").want(0, `3 nodes of releases removed \(701\)`)
	s.wantLive(0)
	s.do("stage", "--release", "700")
	s.do("switch", "--release", "700")
	s.run("release", "prune", "--keep", "0").want(0, "nothing to prune")
	if current := s.releases(); len(current[700].Live) != 3 || !current[0].Former {
		s.Errorf("after pruning: %+v", current)
	}
	s.wantLive(700)
}

// releaseDown: down leaves nothing behind, and up starts the release that was live.
func releaseDown(s *site) {
	s.Helper()
	lines := s.lines("store")
	s.do("down")
	s.wantNoTrace()
	s.do("up")
	s.wantLive(700)
	s.wantKept("store", lines)
	s.run("rollback").want(3, "no former release")
}

// TestReleaseFails: a release that is healthy in quarantine but not when live goes back on its own,
// completely.
func TestReleaseFails(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-relfail", 102)
	s.write("roles/refusing/role.toml", strings.Replace(ledger["roles/ledger/role.toml"], "[[health]]",
		"[[health]]\ncommand = [\"test\", \"!\", \"-e\", \"/srv/data/refused\"]\ntimeout = \"10s\"\nwithin = \"10s\"\n[[health]]",
		1))
	s.write("roles/refusing/ledger.py", ledger["roles/ledger/ledger.py"])
	s.edit("site.toml", `greeter = "greeter2"`, "greeter = \"greeter2\"\nledger = \"refusing\"")
	heard := s.hears("switch-failed")
	s.do("up")
	s.do("stage", "--release", "701")
	s.sh("store", "touch /srv/data/refused")
	before, lines := s.inits(), s.lines("store")
	end := call("10.99.102.101:7000")
	s.run("switch", "--release", "701").
		want(13, "node store of release 701|node store: check: FAILED", "all 3 nodes are back at release none", "refused")
	heard("switch-failed reverted")
	if c := end(); c.said[0] != "one" || c.said[len(c.said)-1] != "one" {
		t.Errorf("the client heard %v", c.said)
	}
	s.wantLive(0)
	s.wantKept("store", lines)
	if after := s.inits(); !maps.Equal(before, after) {
		t.Errorf("first processes were %v and are %v", before, after)
	}
	if got := s.sh("store", "systemctl is-active only.service ledger.service"); got != "active\nactive" {
		t.Errorf("on the live store: %q", got)
	}
	if got := s.in(701, "store", "systemctl is-active only.service || true"); got != "inactive" {
		t.Errorf("in quarantine: %q", got)
	}
	s.run("journal", "-n", "1", "--steps").
		want(0, "switch --release 701", "node store is not healthy", "ended after .*undone")
	releases := s.releases()
	if len(releases[701].Quarantine) != 3 || len(releases[0].Live) != 3 || releases[0].Former || releases[701].Former {
		t.Errorf("releases: %+v", releases)
	}
	s.run("rollback").want(3, "no former release")
	// After the cause is fixed, the same release goes live.
	s.sh("store", "rm /srv/data/refused")
	followed := s.follows("store")
	s.do("switch", "--release", "701")
	s.wantLive(701)
	s.sh("store", "logger of the new release")
	followed("release 701 is now live on node store", "of the new release")
	s.wantKept("store", lines)
	s.sh("store", "touch /srv/data/refused") // the way back does not require health of the new release
	s.do("rollback")
	s.wantLive(0)
}

// TestReleaseFirst: a site that was never up begins with a release.
func TestReleaseFirst(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-relfirst", 103)
	s.run("switch", "--release", "701").
		want(3, "release 701 of site it-relfirst was not staged on this host", "orrery stage --release 701")
	s.do("stage", "--release", "701")
	if live, _ := s.onLive(); len(live) > 0 {
		t.Errorf("live is %v", live)
	}
	s.run("switch", "--release", "701", "--confirm-within", "10m").
		want(3, "the trial of release 701 has no live release to go back to")
	s.run("switch", "--release", "701").want(0, "3 nodes at release 701")
	s.run("up").want(0)
	s.wantLive(701)
	if text, err := greeted("10.99.103.101:7000"); text != "two" {
		t.Errorf("web0 says %q (%v)", text, err)
	}
	s.run("rollback").want(3, "no former release")
	releaseTwoNumbers(s)
	s.do("down")
	s.do("up")
	s.wantLive(701)
}

// releaseTwoNumbers: two numbers alternate. Stage leaves the release that rollback returns to
// alone, until the user gives up the rollback.
func releaseTwoNumbers(s *site) {
	s.Helper()
	says := func(want string) {
		s.Helper()
		if text, err := greeted("10.99.103.101:7000"); text != want {
			s.Errorf("web0 says %q (%v), not %q", text, err, want)
		}
	}
	s.do("stage", "--release", "700")
	s.do("switch", "--release", "700")
	says("one")
	before := s.inits()
	s.run("stage", "--release", "701").want(0, "nothing to do", "orrery rollback returns to them: store, web0, web1")
	if after := s.inits(); !maps.Equal(before, after) {
		s.Errorf("first processes were %v and are %v", before, after)
	}
	s.edit("roles/greeter2/greeter.py", "two", "three")
	s.run("stage", "--release", "701").want(3, "now declares other nodes for it", "--give-up-rollback")
	s.do("switch", "--release", "701")
	says("two")
	s.do("switch", "--release", "700")
	says("one")
	s.run("stage", "--release", "701", "--give-up-rollback").want(0)
	s.run("rollback").want(3, "no former release")
	s.do("switch", "--release", "701")
	says("three")
	s.wantLive(701)
}

// TestReleaseReboot: after a reboot of the host, the live release is live again, and a rollback to
// the former one is still possible.
func TestReleaseReboot(t *testing.T) {
	t.Parallel()
	home := newHome(t, "relboot")
	s := newReleased(t, "it-relboot", 107)
	s.keepIn(home)
	s.do("up")
	s.do("stage", "--release", "701")
	s.do("switch", "--release", "701")
	lines := s.lines("store")
	s.reboot()
	s.run("resume").want(0, "web0 .*701 +running")
	s.wantLive(701)
	s.wantKept("store", lines)
	s.do("rollback")
	s.wantLive(0)
	s.wantKept("store", lines)
	if text, err := greeted("10.99.107.101:7000"); text != "one" {
		t.Errorf("web0 says %q (%v)", text, err)
	}
	// A release on trial that no user confirms. It was live before, and has been stopped since the
	// boot.
	s.reboot()
	s.run("resume").want(0)
	s.run("switch", "--release", "701", "--confirm-within", "8s", "--confirm-by", "hand").want(12)
	s.wantWatched()
	s.reboot()
	s.run("resume").want(0)
	s.trialOver()
	// On a busy machine its time may be over before resume reaches it.
	s.run("confirm").want(13, "release 701 has gone back: (it was not confirmed|it ended while no process watched it)")
	s.wantLive(0)
}

// TestReleasePart: a part of the nodes switches to another release, and the others stay.
func TestReleasePart(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-relpart", 104)
	s.do("up")
	before := s.inits()
	s.run("stage", "web0", "--release", "701").want(0, "orrery switch web0 --release 701")
	if instances := s.instances(); len(instances["web0"]) != 2 || len(instances["web1"]) != 1 {
		t.Errorf("there are %v", instances)
	}
	s.run("switch", "web1", "--release", "701").
		want(3, "node web1 of release 701 does not exist on this host", "orrery stage web1 --release 701")
	s.run("switch", "web0", "web1", "--release", "701").want(3, "node web1 of release 701 does not exist on this host")
	s.wantLive(0)
	s.run("switch", "--release", "701").want(0, "1 node at release 701") // the staged ones
	s.wantLive(701, "web0")
	s.wantLive(0, "web1", "store")
	for node, says := range map[string]string{"101": "two", "102": "one"} {
		if text, err := greeted("10.99.104." + node + ":7000"); text != says {
			t.Errorf("%s says %q (%v)", node, text, err)
		}
	}
	after := s.inits()
	delete(after, "701101")
	if !maps.Equal(before, after) {
		t.Errorf("first processes were %v and are %v", before, after)
	}
	s.run("rollback", "web1").want(3, "node web1 has no former release")
	s.do("stage", "web1", "store", "--release", "701")
	s.do("switch", "web1", "store", "--release", "701")
	s.wantLive(701)
	s.do("rollback", "web1")
	s.wantLive(0, "web1")
	s.wantLive(701, "web0", "store")
	s.do("rollback") // all that have a former release
	s.wantLive(0)
	s.do("down", "web0")
	s.do("up")
	s.wantLive(0)
}

// TestReleaseCopy: the live nodes of a release follow the copy from which it was staged. The copy
// contains everything that the site directory uses, and nothing else.
func TestReleaseCopy(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-relcopy", 121)
	// The second edition is a linked directory with a hidden source, in a site directory that also
	// contains a link to a key.
	s.write("editions/two/role.toml", strings.ReplaceAll(greeterRole, `"greeter.py"`, `".greeter.py"`))
	s.write("editions/two/.greeter.py", greeterSays("two"))
	key := filepath.Join(t.TempDir(), "key")
	for _, step := range []error{
		os.RemoveAll(filepath.Join(s.dir, "roles/greeter2")),
		os.Symlink("../editions/two", filepath.Join(s.dir, "roles/greeter2")),
		os.WriteFile(key, []byte("a key of the host"), 0o600), os.Symlink(key, filepath.Join(s.dir, "key")),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	s.do("up")
	s.do("stage", "web0", "--release", "701")
	s.do("switch", "web0", "--release", "701")
	if text, err := greeted("10.99.121.101:7000"); text != "two" {
		t.Errorf("web0 says %q (%v)", text, err)
	}
	copied := filepath.Join(s.dirs.Release(s.name, 701), "site")
	if _, err := os.Lstat(filepath.Join(copied, "key")); err == nil {
		t.Error("a key of the host is in the copy")
	}
	s.settled()

	s.write("editions/two/.greeter.py", greeterSays("three"))
	before := s.inits()
	s.run("stage", "web1", "--release", "701").
		want(3, "release 701 is used by node web0", "greeter: file /usr/local/bin/greeter.py changed",
			"another release")
	s.settled()
	s.do("up")
	if after := s.inits(); !maps.Equal(before, after) {
		t.Errorf("first processes were %v and are %v", before, after)
	}
	s.write("editions/two/.greeter.py", greeterSays("two"))
	s.edit("site.toml", "[release.700]", "# a remark\n[release.700]")
	s.do("stage", "web1", "--release", "701")
	s.do("switch", "web1", "--release", "701")
	s.wantLive(701, "web0", "web1")
	s.settled()
}

// TestReleaseProduction: in production, commands that change the live release require the site's
// name. The journal records the user.
func TestReleaseProduction(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-relprod", 105)
	s.edit("site.toml", "[network.lan]", "site.production = true\n[network.lan]")
	s.env = append(s.env, "SUDO_USER=ada")
	s.do("up")
	s.do("stage", "--release", "701") // disturbs no node
	before := s.inits()
	refused := func(args ...string) {
		t.Helper()
		s.run(args...).want(9, "not confirmed; nothing was done", "--yes-production it-relprod")
		s.run(append(args, "--yes-production", "other")...).want(9)
		if after := s.inits(); !maps.Equal(before, after) {
			t.Errorf("first processes were %v and are %v", before, after)
		}
	}
	refused("switch", "--release", "701")
	s.wantLive(0)
	s.run("switch", "--release", "701", "--yes-production", s.name).want(0)
	s.wantLive(701)
	s.run("journal", "-n", "1").want(0, "ada: orrery .*switch --release 701")
	refused("rollback")
	s.wantLive(701)
	s.env = append(s.env, "SUDO_USER=grace")
	s.run("rollback", "--yes-production", s.name).want(0)
	s.wantLive(0)
	s.run("journal", "-n", "1").want(0, "grace: orrery .*rollback")
	refused("release", "prune", "--keep", "0")
	s.run("release", "prune", "--keep", "0", "--yes-production", s.name).want(0)
	if r := s.releases()[701]; len(r.Quarantine) != 0 {
		t.Errorf("release 701: %+v", r)
	}
}

// TestReleaseMisuse: impossible requests are refused before anything is done, in the program's own
// words.
func TestReleaseMisuse(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-relmis", 106)
	s.write("roles/broken/role.toml", strings.Replace(greeterRole, "[[health]]\ntcp = 7000\nwithin = \"20s\"",
		"[[health]]\ntcp = 7001\ntimeout = \"1s\"\nwithin = \"2s\"", 1))
	s.write("roles/broken/greeter.py", greeterSays("broken"))
	s.write("roles/greeter2/role.toml",
		greeterRole+"[[health]]\ncommand = [\"test\", \"!\", \"-e\", \"/root/sick\"]\ntimeout = \"10s\"\nwithin = \"10s\"\n")
	s.edit("site.toml", "[release.701]", "[release.702.roles]\ngreeter = \"broken\"\n[release.701]")
	refused := func(status int, texts []string, args ...string) {
		t.Helper()
		r := s.run(args...).want(status, texts...)
		if raw.MatchString(r.errs) {
			t.Errorf("that is no word to a user:\n%s", r.errs)
		}
	}
	refused(3, []string{"release 701 .* was not staged on this host", "orrery stage"}, "switch", "--release", "701")
	refused(3, []string{"no former release"}, "rollback")
	refused(3, []string{"no release is on trial"}, "confirm")
	s.do("up")
	for _, c := range []struct {
		status int
		text   string
		args   []string
	}{
		{2, "release", []string{"stage"}},
		{2, "release", []string{"switch"}},
		{2, `"seven"`, []string{"stage", "--release", "seven"}},
		{2, `"-1"`, []string{"stage", "--release", "-1"}},
		{3, "999.*(701|702|700)", []string{"stage", "--release", "999"}},
		{2, "did you mean", []string{"stage", "web", "--release", "701"}},
		{3, "was not staged on this host", []string{"switch", "--release", "701"}},
		{3, "999", []string{"switch", "--release", "999"}},
		{3, "no former release", []string{"rollback"}},
		{3, "no release is on trial", []string{"confirm"}},
		{2, "checks or hand", []string{"switch", "--release", "701", "--confirm-within", "1m", "--confirm-by", "luck"}},
		{2, "confirm-within", []string{"switch", "--release", "701", "--confirm-within", "soon"}},
		{2, "--keep", []string{"release", "prune", "--keep", "-1"}},
		{3, "release 701 has no nodes", []string{"release", "show", "701"}},
		{2, "", []string{"release", "diff", "701"}},
		{2, "", []string{"release", "burn"}},
	} {
		refused(c.status, []string{c.text}, c.args...)
	}
	s.settled()
	// A release that is not healthy in quarantine.
	// On a busy host the nodes may fail in different ways, each with a line of its own.
	refused(8, []string{"(on web0, web1|node web0): check: .*node (NODE|web0) is not healthy",
		"(on web0, web1|node web1): check: .*node (NODE|web1) is not healthy"}, "stage", "--release", "702")
	s.wantLive(0)
	refused(3, []string{"node (web0|web1) of release 702 has not passed its health checks",
		"orrery stage web. --release 702"}, "switch",
		"--release", "702")
	s.wantLive(0)
	// A release that was healthy, and is no longer.
	s.do("stage", "--release", "701")
	s.in(701, "web1", "touch /root/sick")
	end := call("10.99.106.102:7000")
	refused(13, []string{"node web1 is not healthy", "all 3 nodes are back at release none"}, "switch", "--release", "701")
	if c := end(); !slices.Equal(c.said, []string{"one"}) || c.longest > unanswered {
		t.Errorf("the client heard %v, and nothing for %s", c.said, c.longest)
	}
	s.wantLive(0)
	s.in(701, "web1", "rm /root/sick")
	// A release of which a node does not run.
	s.in(701, "web1", "poweroff")
	s.eventually(func() error { return is(string(s.instances()["web1"][701].State), "stopped") })
	s.run("switch", "--release", "701").want(0, "node web1: start: ok")
	s.wantLive(701)
}
