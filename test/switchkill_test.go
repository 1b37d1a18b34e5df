package test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// TestSwitchKill: whenever a stage, a switch or a rollback is killed, the state of the set is
// reported and then brought to one release completely. The volume is never writable for two nodes,
// and no line of the ledger is lost.
func TestSwitchKill(t *testing.T) {
	t.Parallel()
	kills := need.Kills(60, 100)
	s := newReleased(t, "it-switchkill", 110)
	s.edit("site.toml", "[image.debian]", "[network.data]\nsubnet = \"10.99.111.0/24\"\n[image.debian]")
	random := seed(t)
	s.do("up")
	k := &killing{site: s, random: random, spans: map[string]time.Duration{}, told: map[string]int{}, backups: t.TempDir()}
	for _, args := range [][]string{
		// The second has less to do.
		{"stage", "--release", "701"}, {"switch", "--release", "701"}, {"rollback"}, {"backup", k.backups},
		{"backup", k.backups},
	} {
		k.spans[args[0]] = s.run(args...).want(0).took
	}
	began := time.Now()
	for k.killed < kills {
		k.round()
		if t.Failed() {
			t.Fatalf("after %d kills: %s\n%s", k.killed, k.last, k.kept())
		}
		if time.Since(began) > 20*time.Minute {
			t.Fatalf("only %d kills", k.killed)
		}
	}
	t.Logf("%d kills in %s: %v; whole runs take %v", k.killed, time.Since(began).Round(time.Second), k.told, k.spans)
	for _, what := range []string{"interrupted", "stage", "switch", "rollback", "backup"} {
		if k.told[what] == 0 {
			t.Errorf("of %s, there was none", what)
		}
	}
	s.do("backup", k.backups)
	s.do("backup", "verify", k.backups)
	s.do("down")
	s.wantNoTrace()
}

type killing struct {
	*site
	random  *rand.Rand
	spans   map[string]time.Duration
	told    map[string]int
	killed  int
	last    string
	lines   []string
	backups string
}

// kept is the record of the releases.
func (s *site) kept() string {
	text, _ := os.ReadFile(filepath.Join(s.dirs.Site(s.name), "releases.json"))
	return string(text)
}

// next chooses a command to kill, and prepares the site so that the command has something to do.
func (k *killing) next() []string {
	k.Helper()
	verb := []string{"stage", "switch", "rollback", "backup"}[k.random.IntN(4)]
	if verb == "backup" {
		return []string{"backup", k.backups}
	}
	if k.live() == 701 && verb != "rollback" {
		k.do("rollback")
	}
	switch {
	case verb == "stage" && k.whole(701):
		k.do("release", "prune", "--keep", "0")
	case verb != "stage" && k.live() == 0 && !k.whole(701):
		k.do("stage", "--release", "701")
	}
	if verb == "rollback" && k.live() == 0 {
		k.do("switch", "--release", "701")
	}
	switch {
	case verb == "rollback":
		return []string{verb}
	case verb == "switch" && k.random.IntN(3) == 0:
		return []string{verb, "--release", "701", "--confirm-within", "10m"}
	}
	return []string{verb, "--release", "701"}
}

// whole reports whether a release can be switched to.
func (k *killing) whole(release int) bool {
	for _, of := range k.instances() {
		n, ok := of[release]
		if !ok || n.State != observe.Running || !n.Configured || n.Proven != n.Config.Health ||
			slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool { return m.Copy == spec.NoCopy }) {
			return false
		}
	}
	return true
}

// live returns the live release, which must be the same for all nodes.
func (k *killing) live() int {
	k.Helper()
	whole, partly := k.onLive()
	at := whole["web0"]
	for _, name := range []string{"web0", "web1", "store"} {
		if len(at) != 1 || !slices.Equal(whole[name], at) || len(partly[name]) > 0 {
			k.Fatalf("%s: on the live networks are %v, and partly %v", k.last, whole, partly)
		}
	}
	return at[0]
}

// round kills one run, and sometimes some of the runs that should repair it.
func (k *killing) round() {
	k.Helper()
	args := k.next()
	k.lines = k.site.lines("store")
	k.shoot(args, k.spans[args[0]])
	for k.random.IntN(3) == 0 {
		k.shoot([]string{"up"}, k.spans["switch"])
	}
	interrupted := k.intended()
	if _, _, clear := k.torn(); !clear && !interrupted {
		whole, partly := k.onLive()
		k.Errorf("%s: the set is in parts, and nothing says so: %v, partly %v", k.last, whole, partly)
	}
	verb := []string{"up"}
	r := k.run(verb...).want(0)
	told := strings.Contains(r.errs, "was interrupted; bringing the set to release")
	if told != interrupted {
		k.Errorf("%s: interrupted is %t, told is %t\n%s", k.last, interrupted, told, r.errs)
	}
	if told {
		k.told["interrupted"]++
	}
	k.wantLive(k.live())
	k.wantKept("store", k.lines)
	k.eventually(func() error {
		text, err := greeting("10.99.110.101:7000")
		return cmp.Or(err, is(text, map[int]string{0: "one", 701: "two"}[k.live()]))
	})
	if told && !strings.HasPrefix(k.last, "orrery rollback") && k.live() == 0 && k.releases()[701].Former {
		k.Errorf("%s: rollback would return to a release that never was live", k.last)
	}
	if trial := k.releases()[701].Trial; trial { // of a switch that had ended
		k.told["trial"]++
		k.run("confirm").want(0)
	}
}

// shoot runs a command, kills it at some moment, and immediately checks the state in the kernel.
func (k *killing) shoot(args []string, span time.Duration) {
	k.Helper()
	k.last = "orrery " + strings.Join(args, " ")
	after := time.Duration(k.random.Float64() * 1.1 * float64(span))
	if k.site.killed(after, args...) {
		k.killed++
		k.told[args[0]]++
		k.last = fmt.Sprintf("%s, killed after %s", k.last, after.Round(time.Millisecond/10))
	}
	if all := k.writers("store"); len(all) > 1 {
		k.Errorf("%s: the volume can be written by %v", k.last, all)
	}
	k.site.lines("store")
}

// intended reports whether an unfinished switch is recorded.
func (s *site) intended() bool {
	s.Helper()
	var r observe.Releases
	if err := json.Unmarshal([]byte(cmp.Or(s.kept(), "{}")), &r); err != nil {
		s.Fatal(err)
	}
	return r.Switch != nil
}

// torn describes the releases of the set, and reports whether all of it is at one release.
func (k *killing) torn() (whole, partly map[string][]int, clear bool) {
	whole, partly = k.onLive()
	all := slices.Collect(maps.Values(whole))
	return whole, partly, len(partly) == 0 && len(all) == 3 && len(all[0]) == 1 && slices.Equal(all[0], all[1]) &&
		slices.Equal(all[1], all[2])
}

// TestSwitchKillThenMore: a switch was killed, and something else happens to the set before it is
// repaired.
func TestSwitchKillThenMore(t *testing.T) {
	t.Parallel()
	home := newHome(t, "switchmore")
	s := newReleased(t, "it-switchmore", 112)
	s.keepIn(home)
	random := seed(t)
	s.do("up")
	for range need.Kills(1, 2) {
		for _, more := range []struct {
			name string
			do   func()
		}{
			{"a node is taken down", func() { s.do("down", "web0"); s.do("up") }},
			{"all are taken down", func() { s.do("down"); s.wantNoTrace(); s.do("up") }},
			{"the host reboots", func() { s.reboot(); s.do("resume") }},
			{"a node stops", func() { s.powerOff("store"); s.do("up") }},
			{"it is tried again", s.again},
			{"it is staged again", func() { s.do("stage", "--release", "701") }},
		} {
			for _, verb := range []string{"switch", "rollback"} {
				s.interrupted(random, verb)
				var lines []string
				if verb == "rollback" || len(glob(s.dirs.Volumes(s.name)+"/data/store/ledger")) > 0 {
					lines = s.lines("store")
				}
				before := s.kept() + s.standing()
				more.do()
				if r := s.run("plan"); r.status != 0 {
					t.Fatalf("%s was killed, then %s: %s\nleft is %s\nit was %s and is %s%s", verb, more.name, r.errs, r.out, before,
						s.kept(), s.standing())
				}
				s.wantLive(0)
				if s.intended() {
					t.Errorf("a switch is still on record: %s", s.kept())
				}
				s.wantKept("store", lines)
				if t.Failed() {
					t.Fatalf("%s was killed, then %s: %s", verb, more.name, s.kept())
				}
			}
		}
	}
}

// interrupted kills a command while its switch is recorded.
func (s *site) interrupted(random *rand.Rand, verb string) {
	s.Helper()
	for range 50 {
		s.do("up")
		if s.releases()[701].Live != nil {
			s.do("rollback")
		}
		s.do("stage", "--release", "701")
		args := []string{"switch", "--release", "701"}
		if verb == "rollback" {
			s.do(args...)
			args = []string{"rollback"}
		}
		s.killed(time.Duration((0.05+random.Float64()/2)*float64(time.Second)), args...)
		if s.intended() {
			return
		}
	}
	s.Fatal("no switch could be interrupted")
}

// powerOff makes a node that is live, or partly live, end on its own.
func (s *site) powerOff(node string) {
	s.Helper()
	running := func() (n int) {
		for _, i := range s.instances()[node] {
			if i.Runs() {
				n++
			}
		}
		return n
	}
	before := running()
	_ = s.run("shell", node, "--", "poweroff")
	s.eventually(func() error {
		if running() < before { // an instance of another release may have been stopped before
			return nil
		}
		return fmt.Errorf("node %s does not end", node)
	})
}

// standing describes the states of the instances for messages.
func (s *site) standing() string {
	text := ""
	for name, of := range s.instances() {
		for release, n := range of {
			text += fmt.Sprintf("%s of %d: %s, staged %t, active %t, configured %t, links %+v, volumes %+v\n", name, release,
				n.State, n.Staged, n.Active, n.Configured, n.NICs, n.Mounts)
		}
	}
	return text
}

// again repeats a switch that was killed. The killed switch may have got so far that its copies of
// volumes are gone.
func (s *site) again() {
	s.Helper()
	r := s.run("switch", "--release", "701")
	if r.status == 0 {
		s.wantLive(701)
		s.do("rollback")
		return
	}
	r.want(3, "orrery stage store --release 701")
	s.do("up")
}
