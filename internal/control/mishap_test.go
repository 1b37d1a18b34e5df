package control_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control/backups"
	"orrery/internal/control/nodes"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/status"
	"orrery/internal/control/twins"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// onEach has a node on each of two hosts.
var onEach = strings.Replace(twoHosts, `[node."web{1..2}"]`, "[node.web1]", 1)

const bothUp = "db none running healthy, web1 none running healthy"

// A trip is a verb that is repeated, each time with a different mishap.
type trip struct {
	before  func()       // creates the state in which the verb begins
	verb    func() error // repeated until it has succeeded
	reached func() bool  // whether the verb's goal is reached
	again   func() error // reaches the goal after a mishap, or nil if the verb itself does
	quiet   []string     // calls whose failure has no effect that matters
}

// frailDesk returns a site on two hosts whose calls can be made to fail.
func frailDesk(t *testing.T, disks bool) (*desk, *mishaps) {
	t.Helper()
	m := &mishaps{}
	d, other := newDesk(t), newMachine(t)
	if disks {
		d, other.disk = diskDesk(t), true
	}
	d.machine.others = map[string]*machine{"sv2": other}
	for i, one := range []*machine{d.machine, other} {
		one.mishaps, one.name = m, []string{"sv1", "sv2"}[i]
		for _, key := range []string{"toykat", "toykat.dev"} {
			one.of(key).Addresses = []observe.Address{{Prefix: []string{"10.8.1.1/24", "10.8.1.2/24"}[i], Link: "eth0",
				MTU: 1500}}
		}
	}
	d.write("site.toml", onEach+"[release.700]\n[release.701]\n")
	return d, m
}

// A chance is one mishap that can happen to a verb.
type chance struct {
	name     string
	order    func()
	happened func() bool
}

// chances returns the possible mishaps of a verb, from the calls that it makes without mishaps.
// These are calls of hosts, of the engine, and of what nodes are built on.
func (d *desk) chances(m *mishaps, verb func() error) (all []chance) {
	d.Helper()
	machines := []*machine{d.machine, d.others["sv2"]}
	before := []int{len(machines[0].fault.Calls()), len(machines[1].fault.Calls())}
	m.order("", 0)
	d.must(verb())
	for _, name := range slices.Sorted(maps.Keys(m.called())) {
		if strings.HasSuffix(name, " Dial") {
			continue // the other end waits 15 s for it
		}
		for nth := range min(m.called()[name], 2) {
			all = append(all, chance{name, func() { m.order(name, nth+1) }, m.happened})
		}
	}
	for i, one := range machines {
		calls := one.fault.Calls()[before[i]:]
		slices.Sort(calls)
		for _, call := range slices.Compact(calls) {
			method, subject, _ := strings.Cut(call, " ")
			if method == "Run" {
				continue // a health check is repeated
			}
			after := 0
			all = append(all, chance{
				one.name + " " + call,
				func() { after = len(one.fault.Calls()); one.fault.Fail(method, subject, 1, errMishap) },
				func() bool { return slices.Contains(one.fault.Calls()[after:], call) },
			})
		}
	}
	m.order("", 0)
	return all
}

// try makes every call of the verb fail once. Each time the error must be reported, and the verb
// must reach its goal in the end.
func (d *desk) try(m *mishaps, v trip) {
	d.Helper()
	v.before()
	all := d.chances(m, v.verb)
	if !v.reached() {
		d.Fatalf("without a mishap, the nodes are %s", d.nodes())
	}
	for _, mishap := range all {
		v.before()
		d.watch.events = nil
		mishap.order()
		err := v.verb()
		happened := mishap.happened()
		m.order("", 0)
		d.fault.Revive()
		d.others["sv2"].fault.Revive()
		if !happened {
			continue // how often the verb makes the call depends on which host is first
		}
		told, again := d.watch.text(), v.verb
		if v.again != nil && !v.reached() {
			again = v.again
		}
		if err != nil {
			told += err.Error()
		}
		if !strings.Contains(told, string(errMishap)) &&
			!slices.ContainsFunc(v.quiet, func(call string) bool { return strings.Contains(mishap.name, " "+call) }) {
			d.Errorf("%s fails, and the verb says %v\ntold: %s", mishap.name, err, d.watch.text())
		}
		for range 2 { // the first run may only repair what was left
			if !v.reached() {
				err = again()
			}
		}
		if !v.reached() {
			d.Errorf("after %s has failed: %v\nthe nodes are %s", mishap.name, err, d.nodes())
		}
	}
}

func (d *desk) are(want string) func() bool {
	return func() bool { return d.nodes() == want }
}

// reads reports whether a file of a node contains a text.
func (d *desk) reads(node, path, want string) bool {
	in, err := way.Runner(d.Context(), d.Session, d.site(), node)
	var out strings.Builder
	if err == nil {
		err = in.Run(d.Context(), host.Command{Args: []string{"cat", path}, Stdout: &out})
	}
	return err == nil && out.String() == want
}

// backThen reports whether all nodes run and have the data of writeAll("then").
func (d *desk) backThen() bool {
	return d.nodes() == bothUp && d.reads("db", book, "then") && d.reads("web1", motd, "then")
}

func (d *desk) downAll() {
	d.Helper()
	_, err := sites.Down(d.Context(), d.Session, d.site(), nil, true)
	d.must(err)
}

// TestMishapUp: any failure while a site comes up, stops, starts or goes down is reported, and the
// same verb completes the change.
func TestMishapUp(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.try(m, trip{before: d.downAll, verb: func() error {
		_, _, err := sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
		return err
	}, reached: d.are(bothUp)})
	d.try(m, trip{before: d.up, verb: func() error {
		_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web*"})
		return err
	},
		reached: d.are("db none running healthy, web1 none stopped -")})
	d.try(m, trip{before: d.up, verb: func() error {
		_, err := sites.Down(t.Context(), d.Session, d.site(), nil, true)
		return err
	},
		reached: d.are("db none absent -, web1 none absent -")})
}

// TestMishapStage: any failure while a release is staged is reported, and live nodes are not
// affected.
func TestMishapStage(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	stage := func(release int) error {
		_, err := releases.Stage(t.Context(), d.Session, d.site(), nil, releases.StageOptions{Release: release})
		return err
	}
	staged := "db none running healthy, db* 700 running healthy, web1 none running healthy, web1* 700 running healthy"
	// otherwise it is staged as if it were new
	d.try(m, trip{before: func() { _, err := releases.Prune(t.Context(), d.Session, d.site(), 0); d.must(err) },
		verb: func() error { return stage(700) }, reached: d.are(staged), quiet: []string{"Releases.Editions"}})
}

// TestMishapSwitch: any failure while a release is made live or rolled back is reported, and in the
// end all nodes have the same release.
func TestMishapSwitch(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	d.stage(700)
	d.turnTo(700)
	d.stage(701)
	live := func(release string) func() bool {
		return func() bool {
			status, err := status.Read(t.Context(), d.Session, d.site(), nil)
			d.must(err)
			n := 0
			for _, node := range status.Nodes {
				if !node.Quarantine && site.ReleaseName(node.Release) == release && node.State == "running" {
					n++
				}
			}
			return n == 2
		}
	}
	forward := func() error {
		_, err := releases.Switch(t.Context(), d.Session, d.site(), nil, releases.SwitchOptions{Release: 701})
		return err
	}
	back := func() error {
		_, err := releases.Rollback(t.Context(), d.Session, d.site(), nil)
		return err
	}
	d.try(m, trip{before: func() {
		if live("701")() {
			d.must(back())
		}
		// the other host has the same copy
	}, verb: forward, reached: live("701"), quiet: []string{"Releases.SendEdition"}})
	d.try(m, trip{before: func() {
		if live("700")() {
			d.must(forward())
		}
	}, verb: back, reached: live("700"), quiet: []string{"Releases.SendEdition"}})
}

// TestMishapMove: any failure while a node moves is reported, and the node is on one of the two
// hosts with all its data.
func TestMishapMove(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.say("web1", motd, "then")
	move := func(to string) error {
		_, err := nodes.Move(t.Context(), d.Session, d.site(), []string{"web1"}, to)
		return err
	}
	at := func(want string) bool {
		status, err := status.Read(t.Context(), d.Session, d.site(), nil)
		d.must(err)
		for _, n := range status.Nodes {
			if n.Node == "web1" {
				return n.Host == want && n.State == "running"
			}
		}
		return false
	}
	d.write("site.toml", strings.Replace(strings.Replace(onEach, "roles = [\"web\"]\nhost  = \"sv2\"\n",
		"roles = [\"web\"]\n", 1), "net.far", "net.lan", 1))
	d.up()
	d.try(m, trip{before: func() {
		d.must(move("sv2"))
		d.wantSaid("web1", motd, "then")
	}, verb: func() error { return move("sv1") }, reached: func() bool { return at("sv1") }})
	d.wantSaid("web1", motd, "then")
}

// TestMishapSnapshot: any failure while a snapshot is taken or restored is reported, and no node
// stays frozen.
func TestMishapSnapshot(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	var last *snapshots.Snapshot
	take := func() (err error) {
		last, err = snapshots.Take(t.Context(), d.Session, d.site(), nil, snapshots.Extras{})
		return err
	}
	d.writeAll("then")
	d.try(m, trip{before: func() { last = nil }, verb: take,
		reached: func() bool { return last != nil && d.nodes() == bothUp }})
	d.must(take())
	d.try(m, trip{before: func() { d.up(); d.writeAll("now") }, verb: func() error {
		_, err := snapshots.Restore(t.Context(), d.Session, d.site(), last.ID, nil)
		return err
	}, reached: d.backThen})
}

// TestMishapBackup: any failure while a backup is taken or restored is reported, and an existing
// backup is whole.
func TestMishapBackup(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, true)
	d.up()
	d.writeAll("then")
	to := filepath.Join(t.TempDir(), "backups") + "/"
	var taken *backups.Taken
	take := func() (err error) {
		taken, err = backups.Take(t.Context(), d.Session, nil, to, backups.Options{})
		return err
	}
	d.try(m, trip{before: func() { taken = nil }, verb: take,
		reached: func() bool { return taken != nil && d.nodes() == bothUp }})
}

// TestMishapTwin: any failure while a twin is created or destroyed is reported, and in the end all
// of it exists, or nothing.
func TestMishapTwin(t *testing.T) {
	t.Parallel()
	d, m := frailDesk(t, false)
	d.up()
	running := func(want int) func() bool {
		return func() bool {
			all, _, err := twins.List(t.Context(), d.Session)
			d.must(err)
			n := 0
			for _, one := range all {
				n += one.Running
			}
			return n == want
		}
	}
	gone := func() {
		all, _, err := twins.List(t.Context(), d.Session)
		d.must(err)
		if len(all) > 0 {
			d.must(twins.Destroy(t.Context(), d.Session, "dev"))
		}
	}
	d.try(m, trip{before: gone, verb: d.makeEndingTwin, reached: running(2), again: func() error {
		if all, _, err := twins.List(t.Context(), d.Session); err != nil || len(all) == 0 {
			return d.makeEndingTwin()
		}
		of := d.ofTwin("dev")
		_, _, err := sites.Up(t.Context(), of.Session, of.site(), nil, sites.UpOptions{})
		return err
	}})
	d.try(m, trip{before: func() { gone(); d.must(d.makeEndingTwin()) },
		verb: func() error { return twins.Destroy(t.Context(), d.Session, "dev") }, reached: running(0)})
}
