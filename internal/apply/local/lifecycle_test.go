package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/apply/local/backends"
	"orrery/internal/apply/local/memory"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/plan/wayback"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// A world is a site on a host whose parts are in memory, except for its files.
type world struct {
	*testing.T
	*apply.HostClient
	host  *local.Host // the worker of the host
	below *fake.Host
	site  *site.Site
	ran   []string // commands that were run in nodes
	sick  bool
}

const password = "not for everybody"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	me := fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	s := &site.Site{
		Name: "karoo", Images: []site.Image{{Name: "debian", Suite: "bookworm"}}, Hosts: []site.Host{{Name: "sv1"}},
		Networks: []site.Network{{Name: "cam", Subnet: netip.MustParsePrefix("10.0.0.0/24"),
			Gateway: netip.MustParseAddr("10.0.0.1"), MTU: 1500}},
		Secrets:  []site.Secret{{Name: "password", File: filepath.Join(dir, "password")}},
		Releases: []site.Release{{Number: 700, Requirements: site.Requirements{File: "a", Text: "p==1\n"}}},
		Roles: []site.Role{{
			Name: "web", Dir: "roles/web", Pip: []string{"p"}, Services: []string{"web.service"},
			Active: []string{"dish.service"},
			Env:    map[string]string{"PORT": "80"}, Secrets: []site.SecretUse{{Name: "password", Owner: me, Mode: 0o400}},
			Files: []site.File{
				{Path: "/etc/web", Template: "t", Content: []byte("first of {{.Node.Name}}\n"), Owner: "root:root", Mode: 0o644},
				{Path: "/etc/key", Template: "k", Content: []byte(`key={{secret "password" | quote}}`), Owner: me, Mode: 0o644,
					Unsaid: true},
			},
			Steps: []site.Step{
				{Name: "seed", When: site.Boot, Script: []byte("seed"), Interpreter: []string{"/bin/sh"}, Timeout: time.Minute},
				{Name: "show", When: site.Active, Script: []byte("show"), Interpreter: []string{"/bin/sh"}, Timeout: time.Minute},
			},
			Volumes: []site.VolumeUse{{Name: "rows", Path: "/srv", Owner: "root:root", Mode: 0o755, Exclusive: true,
				Quarantine: site.CopySnapshot}},
			Health: []site.HealthCheck{{Command: []string{"ask"}, Timeout: time.Minute, Interval: time.Second,
				Within: time.Minute}},
		}},
	}
	for i, name := range []string{"db", "web"} {
		n := site.Node{Name: name, ID: 101 + i, Image: "debian", Engine: "fake", Host: "sv1", Autostart: true,
			Roles: []string{"web"}}
		n.NICs = []site.NIC{{Network: "cam", Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})}}
		s.Nodes = append(s.Nodes, n)
	}
	w := &world{T: t, site: s, below: fake.NewHost("karoo", "sv1", 8, 8<<30)}
	w.below.Command = func(_ context.Context, ref engine.Ref, c host.Command) error {
		w.ran = append(w.ran, ref.Name+": "+strings.Join(c.Args, " "))
		if c.Args[0] == "ask" && w.sick {
			return errors.New("exit status 1")
		}
		return nil
	}
	w.begin(host.Dirs{State: dir + "/state", Run: dir + "/run"})
	return w
}

// begin replaces the host by one that another process opens.
func (w *world) begin(dirs host.Dirs) {
	var releases map[int]*site.Site
	if w.HostClient != nil {
		releases = w.releases()
	}
	w.HostClient = apply.NewHostClient("sv1", w.site, dirs, func(secrets apply.Secrets) apply.Host {
		w.host = local.ThisMachine("sv1", w.site.Key(), dirs, map[string]engine.Engine{"fake": w.below.Engine}, secrets)
		w.host.Backends = memory.Backends(w.below, dirs)
		return w.host.Host
	})
	for number, s := range releases {
		w.release(number, s)
	}
}

// releases returns the releases of its site by number.
func (w *world) releases() map[int]*site.Site {
	return apply.SingleHost(w.HostClient).Views().Releases()
}

// release adds a release of its site to the world.
func (w *world) release(number int, s *site.Site) {
	apply.SingleHost(w.HostClient).Views().Add(number, s)
}

// tried is an engine that counts how often it is tested.
type tried struct {
	engine.Engine
	times *int
}

func (e tried) ProbeCapabilities(context.Context) observe.Capabilities {
	*e.times++
	return observe.Capabilities{Accel: observe.TCG}
}

// left is an engine that has a node that is no longer declared.
type left struct{ tried }

func (left) List(context.Context, string) ([]observe.Node, error) {
	return []observe.Node{{Node: spec.Node{Site: "karoo", Name: "left", ID: 300, Engine: "kvm"},
		State: observe.Stopped}}, nil
}

// TestTrial: an engine is tested only for a site that has nodes of it, or will have some.
func TestTrial(t *testing.T) {
	w := newWorld(t)
	times := 0
	w.host.Engines["kvm"] = tried{fake.NewHost("karoo", "sv1", 8, 8<<30).Engine, &times}
	if h := w.observed()[0]; times != 0 || h.Engines["kvm"].Accel != "" {
		t.Errorf("a site of other nodes has put it on trial %d times", times)
	}
	w.site.Nodes[1].Engine = "kvm"
	if h := w.observed()[0]; times != 1 || h.Engines["kvm"].Accel != observe.TCG {
		t.Errorf("a site that declares such a node has put it on trial %d times", times)
	}
	w.site.Nodes[1].Engine = "fake"
	w.release(700, &site.Site{Nodes: []site.Node{{Engine: "kvm"}}})
	if w.observed(); times != 2 {
		t.Errorf("a release that declares such a node has put it on trial: %d times in all", times)
	}
	w.release(700, &site.Site{})
	w.host.Engines["kvm"] = left{w.host.Engines["kvm"].(tried)}
	if h := w.observed()[0]; times != 3 || h.Engines["kvm"].Accel != observe.TCG {
		t.Errorf("a site that has such a node has put it on trial: %d times in all", times)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) observed() []observe.Host {
	w.Helper()
	h, err := w.Observe(w.Context())
	w.must(err)
	return []observe.Host{h}
}

type unwatched struct{}

func (unwatched) Begin(*plan.Step)          {}
func (unwatched) Detail(*plan.Step, string) {}
func (unwatched) Waits(*plan.Step, string)  {}
func (unwatched) End(*plan.Step, error)     {}

func (w *world) run(p *plan.Plan) *apply.Result {
	return apply.Run(w.Context(), p, map[string]apply.Worker{"sv1": w}, unwatched{}, 1)
}

// reach carries out a plan completely.
func (w *world) reach(p *plan.Plan, err error) *plan.Plan {
	w.Helper()
	w.must(err)
	r := w.run(p)
	for _, f := range r.Failed {
		w.Errorf("%s: %v", f.Step, f.Err)
	}
	if !r.OK() {
		w.FailNow()
	}
	return p
}

func (w *world) up() (*plan.Plan, error) {
	w.Helper()
	w.must(w.Runs.Sweep(w.Context()))
	return plan.Up(w.site, w.observed(), plan.Goal{Releases: w.releases()})
}

func (w *world) settled(p *plan.Plan) {
	w.Helper()
	w.must(w.Runs.DiscardUndo(w.Context(), p.Steps))
	if _, err := os.Stat(filepath.Join(w.host.Dirs.Site("karoo"), "undo")); !errors.Is(err, fs.ErrNotExist) {
		w.Errorf("what was kept for undoing is there after the run: %v", err)
	}
}

func (w *world) file(ref engine.Ref, path string) string {
	f, _ := w.below.File(ref, path)
	return string(f.Content) + f.Link
}

func (w *world) spelt(name string) *spec.Node {
	w.Helper()
	for _, n := range w.observed()[0].Nodes {
		if n.Name == name && !n.Staged {
			return &n.Node
		}
	}
	w.Fatalf("node %s is not there", name)
	return nil
}

// TestEtc: the names and secrets of nodes are in /etc/orrery. A secret that belongs in another file
// is a link to there.
func TestEtc(t *testing.T) {
	w := newWorld(t)
	w.settled(w.reach(w.up()))
	if p, err := w.up(); err != nil || !p.Empty() {
		t.Errorf("there is something left to do: %v", err)
	}
	n := w.spelt("web")
	for name, want := range map[string]string{
		"hosts": "10.0.0.10 db.karoo db db.cam.karoo", "inventory.json": `"db"`,
		"ssh_known_hosts": "web,web.karoo,web.cam.karoo,10.0.0.11 ssh-ed25519 ",
		"env":             `PORT="80"`, "secrets/password": password,
		role.SecretFilePath("/etc/key"): `key="` + password + `"`,
	} {
		text, err := os.ReadFile(filepath.Join(w.host.Dirs.Etc("karoo", n.ID), name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	}
	if info, err := os.Stat(filepath.Join(w.host.Dirs.Etc("karoo", n.ID), role.SecretFilePath("/etc/key"))); err != nil ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("the file with a secret is open: %v", err)
	}
	ref := engine.RefOf(n)
	if got := w.file(ref, "/etc/web") + w.file(ref, "/etc/key"); got != "first of web\n/etc/orrery/"+
		role.SecretFilePath("/etc/key") {
		t.Errorf("the node has %q", got)
	}
	if got := w.Secrets.Redact("x " + password); got != "x <secret password>" {
		t.Errorf("told is %q", got)
	}
}

// TestUndoByAnother: another process, which has only the files on disk, can undo what a killed
// process has done.
func TestUndoByAnother(t *testing.T) {
	w := newWorld(t)
	w.settled(w.reach(w.up()))
	before, _ := os.ReadFile(w.host.Dirs.Names("karoo"))
	w.site.Roles[0].Files[0].Content = []byte("second of {{.Node.Name}}\n")
	w.site.Nodes[0].NICs[0].Address = netip.MustParseAddr("10.0.0.99")
	w.begin(w.host.Dirs)
	p, err := w.up()
	w.must(err)
	w.below.Fail("Put", "web", 1, nil)
	r := w.run(p)
	if len(r.Failed) != 1 {
		t.Fatalf("failed are %v", r.Failed)
	}
	db := w.spelt("db")
	if got := w.file(engine.RefOf(db), "/etc/web"); got != "second of db\n" {
		t.Fatalf("the node has %q", got)
	}
	done := append(r.Done, r.Failed[0].Step)
	w.begin(w.host.Dirs)
	w.reach(wayback.Undo(p, done), nil)
	for _, name := range []string{"db", "web"} {
		n := w.spelt(name)
		if got := w.file(engine.RefOf(n), "/etc/web"); got != "first of "+name+"\n" {
			t.Errorf("node %s has %q", name, got)
		}
		hosts, _ := os.ReadFile(filepath.Join(w.host.Dirs.Etc("karoo", n.ID), "hosts"))
		if strings.Contains(string(hosts), "10.0.0.99") {
			t.Errorf("node %s is told\n%s", name, hosts)
		}
	}
	if now, _ := os.ReadFile(w.host.Dirs.Names("karoo")); string(now) != string(before) || len(now) == 0 {
		t.Error("the names on record are others")
	}
	// Also services that run only on live nodes are restarted, because they have read the files.
	if all := w.below.Commands(engine.RefOf(db)); !slices.ContainsFunc(all, func(c host.Command) bool {
		return slices.Contains(c.Args, "restart") && slices.Contains(c.Args, "web.service") &&
			slices.Contains(c.Args, "dish.service")
	}) {
		t.Errorf("services are not restarted by %+v", all[max(0, len(all)-5):])
	}
	for _, n := range w.observed()[0].Nodes {
		if !n.Configured || n.NICs[0].Address.String() != "10.0.0."+map[string]string{"db": "10", "web": "11"}[n.Name]+"/24" {
			t.Errorf("%+v", n)
		}
	}
}

// TestSwitchThere: the steps of a switch are done by one process and undone by another.
func TestSwitchThere(t *testing.T) {
	w := newWorld(t)
	w.settled(w.reach(w.up()))
	none, err := twin.Release(w.site, 0)
	w.must(err)
	w.release(0, none)
	w.stage(700)
	live := func() map[string]bool {
		all := map[string]bool{}
		for _, n := range w.observed()[0].Nodes {
			all[fmt.Sprint(n.Name, n.Release)] = n.Active && !n.Staged && n.Configured
		}
		return all
	}
	before := live()
	p, err := release.Switch(w.site, w.observed(),
		release.Goal{To: map[string]int{"db": 700, "web": 700}, Releases: w.releases()})
	w.reach(p, err)
	if after := live(); !after["db700"] || !after["web700"] || after["db0"] || after["web0"] {
		t.Errorf("live are %v after\n%v", after, p.Steps)
	}
	if r, err := w.Releases.Read(t.Context()); err != nil || r.Active["db"] != 700 || fmt.Sprint(r.Staged) != "[700]" {
		t.Errorf("on record is %+v, %v", r, err)
	}
	w.begin(w.host.Dirs)
	w.reach(wayback.Undo(p, p.Steps), nil)
	if after := live(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("live are %v, not %v", after, before)
	}
	w.settled(w.reach(release.Switch(w.site, w.observed(),
		release.Goal{To: map[string]int{"db": 700, "web": 700}, Releases: w.releases()})))
	w.reach(w.up())
	down := plan.Down(w.site, w.observed(), plan.Goal{Volumes: true, Releases: w.releases()})
	w.settled(w.reach(down, nil))
	w.must(w.Do(t.Context(), &plan.Step{Kind: plan.ForgetRelease, Host: "sv1", Release: 700}, func(string) {}))
	if h := w.observed()[0]; len(h.Nodes)+len(h.Volumes)+len(h.Releases.Staged) > 0 || h.Names != "" {
		t.Errorf("left is %+v", h)
	}
	if err := w.Do(t.Context(), &plan.Step{Kind: "unheard-of", Host: "sv1"}, func(string) {}); err == nil {
		t.Error("an unknown step is done")
	}
}

func (w *world) stage(number int) {
	w.Helper()
	staged, err := twin.Quarantine(w.site, number)
	w.must(err)
	p, of, err := release.Stage(staged, nil, w.observed(), plan.Goal{})
	w.must(err)
	w.must(os.MkdirAll(w.host.Dirs.Release("karoo", number), 0o700))
	w.release(number, of)
	w.settled(w.reach(p, nil))
	lives := *of
	lives.Stage = 0
	w.release(number, &lives)
}

// TestSick: a node that is not healthy is not proven, and secrets in the output of its check are
// hidden.
func TestSick(t *testing.T) {
	w := newWorld(t)
	w.site.Roles[0].Health[0].Within = 50 * time.Millisecond
	w.sick = true
	p, err := w.up()
	w.must(err)
	r := w.run(p)
	if len(r.Failed) != 2 || !strings.Contains(r.Failed[0].Err.Error(), "is not healthy") ||
		errors.Unwrap(r.Failed[0].Err) == nil {
		t.Errorf("failed are %v", r.Failed)
	}
	for _, n := range w.observed()[0].Nodes {
		if n.Proven != "" || !n.Configured {
			t.Errorf("%+v", n)
		}
	}
}

// TestHostKeepsRecord: the lock, journal, logs and Runner are methods of the host.
func TestHostKeepsRecord(t *testing.T) {
	w := newWorld(t)
	h := w.host.Host
	if os.Geteuid() == 0 { // this mounts a tmpfs
		letGo, err := h.Runs.Lock(t.Context(), host.Holder{Who: "me", Pid: os.Getpid()})
		w.must(err)
		if _, err := h.Runs.Lock(t.Context(), host.Holder{Who: "you"}); err == nil || !strings.Contains(err.Error(), "me") {
			t.Errorf("two hold the site: %v", err)
		}
		letGo()
	}
	j, err := h.Runs.OpenJournal(t.Context())
	w.must(err)
	w.must(j.Add(journal.Entry{Time: time.Now(), Kind: "begin", Command: "up"}))
	w.must(j.Close())
	if all, _, err := h.Runs.ReadJournal(t.Context(), 0); err != nil || len(all) != 1 || all[0].Command != "up" {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := h.Nodes.Log(t.Context(), "web"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	w.reach(w.up())
	log, err := h.Nodes.Log(t.Context(), "web")
	w.must(err)
	defer log.Close()
	if text, err := io.ReadAll(log); err != nil || !strings.Contains(string(text), "step seed") {
		t.Errorf("%s %v", text, err)
	}
	n := w.spelt("web")
	in, err := h.Nodes.Runner(n)
	w.must(err)
	w.must(in.Run(t.Context(), host.Command{Args: []string{"true"}}))
	strange := *n
	strange.Engine = "strange"
	if _, err := h.Nodes.Runner(&strange); err == nil {
		t.Error("there is a way into what has no engine")
	}
	o, _ := w.observed()[0].Node("web")
	read, err := h.Nodes.ReadUsage(t.Context(), []observe.Node{*o}, map[int]host.Sample{})
	w.must(err)
	if len(read) != 1 || read[0].Usage == nil || read[0].Usage.Disk != -1 || read[0].Usage.Processors != -1 {
		t.Errorf("%+v", read)
	}
	took, err := h.Runs.LastDuration(t.Context(), &plan.Step{Kind: plan.BuildLayer, Layer: &spec.Layer{}})
	w.must(err)
	left, err := w.Runs.SkippedFiles(t.Context())
	w.must(err)
	if took != 0 || len(left) > 0 {
		t.Error("it knows what nobody does")
	}
}

// TestReplaceThereAndBack: after another process has undone a replacement, the node has its former
// layers and files.
func TestReplaceThereAndBack(t *testing.T) {
	w := newWorld(t)
	w.settled(w.reach(w.up()))
	before := w.spelt("db")
	w.site.Roles[0].Apt = []string{"jq"}
	w.begin(w.host.Dirs)
	p := w.reach(w.up())
	if after := w.spelt("db"); after.Layer == before.Layer {
		t.Fatal("nothing was replaced")
	}
	w.begin(w.host.Dirs)
	w.reach(wayback.Undo(p, p.Steps), nil)
	if after := w.spelt("db"); after.Layer != before.Layer || w.file(engine.RefOf(after), "/etc/web") != "first of db\n" {
		t.Errorf("it is %+v", after)
	}
	if again, err := w.up(); err != nil || again.Empty() {
		t.Errorf("nothing is left to do: %v", err)
	}
}

// bare is an engine without optional methods.
type bare struct{ engine.Engine }

// TestBareEngine: what an engine cannot do is done in another way, or is an error.
func TestBareEngine(t *testing.T) {
	w := newWorld(t)
	w.host.Engines["fake"] = bare{w.below.Engine}
	w.settled(w.reach(w.up()))
	n := w.spelt("web")
	do := func(kind plan.Kind, n *spec.Node) error {
		return w.Do(t.Context(), &plan.Step{Kind: kind, Host: "sv1", Subject: n.Name, Node: n, Old: n}, func(string) {})
	}
	w.must(do(plan.KillNode, n))
	apart := *n
	apart.Staged = true
	if err := do(plan.StartNode, &apart); err == nil || !strings.Contains(err.Error(), "dish.service") {
		t.Errorf("a node that was live starts in quarantine: %v", err)
	}
	if err := do(plan.ReplaceNode, n); err == nil || !strings.Contains(err.Error(), "cannot keep a replaced node") {
		t.Errorf("what cannot be kept is replaced: %v", err)
	}
	other := *n
	other.Layer = "other"
	if err := do(plan.RestoreNode, &other); err == nil || !strings.Contains(err.Error(), "cannot keep a replaced node") {
		t.Errorf("what was not kept is back: %v", err)
	}
	w.must(do(plan.RestoreNode, n)) // it was never replaced
	w.must(do(plan.StartNode, n))
	without := *n
	without.Mounts = []spec.Mount{n.Mounts[0]}
	without.Mounts[0].Copy = spec.NoCopy
	for _, kind := range []plan.Kind{plan.RetireNode, plan.TakeVolumes, plan.ReturnVolumes, plan.ActivateNode} {
		if err := do(kind, &without); err == nil || !strings.Contains(err.Error(), "cannot change the volumes") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	gone := *n
	gone.Name, gone.ID = "nobody", 7
	for _, kind := range []plan.Kind{plan.ConfigureNode, plan.CheckNode, plan.RepairNode, plan.RetireNode} {
		if err := do(kind, &gone); err == nil || !strings.Contains(err.Error(), "not declared") {
			t.Errorf("%s of a node that is not declared: %v", kind, err)
		}
	}
	if err := w.host.Runs.Do(t.Context(), &plan.Step{Kind: plan.CheckNode, Host: "sv1", Node: n},
		func(string) {}); err == nil {
		t.Error("a step without its load is done")
	}
	w.must(do(plan.RevertNode, n)) // it was not configured in this run
}

// TestReleasesOnRecord: when the record of live releases changes, Live returns the new state at
// once.
func TestReleasesOnRecord(t *testing.T) {
	w := newWorld(t)
	made, err := twin.Release(w.site, 700)
	w.must(err)
	w.release(700, made)
	of := func() int {
		t.Helper()
		s, err := w.Live(t.Context())
		w.must(err)
		return s.Nodes[0].Release
	}
	if of() != 0 || w.SiteOf(&made.Nodes[0]) != made || w.SiteOf(&w.site.Nodes[0]) != w.site {
		t.Error("a release is live before it is")
	}
	w.must(w.Releases.Write(t.Context(), observe.Releases{Active: map[string]int{"db": 700}}))
	if of() != 700 {
		t.Error("what is live is not known")
	}
	w.must(w.Do(t.Context(), &plan.Step{Kind: plan.CommitSwitch, Host: "sv1", Releases: &observe.Releases{
		Trial: &observe.Trial{Release: 700, Within: time.Minute},
	}}, func(string) {}))
	if r, err := w.Releases.Read(t.Context()); err != nil || of() != 0 || r.Trial == nil || r.Trial.Until.IsZero() {
		t.Errorf("on record is %+v, %v", r, err)
	}
	w.must(os.WriteFile(filepath.Join(w.host.Dirs.Site("karoo"), "releases.json"), []byte("{"), 0o600))
	if _, err := w.Releases.Read(t.Context()); err == nil {
		t.Error("half a record is read")
	}
}

// unguarded is networks whose ports are not guarded.
type unguarded struct {
	backends.Networks
	guarded []network.Port
}

func (u *unguarded) Make(_ context.Context, _ spec.Network, nodes func() ([]network.Port, error)) (err error) {
	u.guarded, err = nodes()
	return err
}

// TestPortsAreGuardedAgain: when a network is created again under running nodes, their ports are
// known.
func TestPortsAreGuardedAgain(t *testing.T) {
	w := newWorld(t)
	w.settled(w.reach(w.up()))
	on := &unguarded{Networks: w.host.Backends.Networks}
	w.host.Backends.Networks = on
	cam := spec.NewBuilder(w.site).Networks()[0]
	w.must(w.Do(t.Context(), &plan.Step{Kind: plan.MakeNetwork, Host: "sv1", Network: &cam}, func(string) {}))
	if len(on.guarded) != 2 || on.guarded[0].Bridge != cam.Bridge {
		t.Errorf("guarded are %+v", on.guarded)
	}
}

// walls is networks that record which ports are guarded, and an engine that refuses to start or
// change a node with unguarded ports.
type walls struct {
	backends.Networks
	engine.Engine
	t       *testing.T
	guarded map[string]bool
	records backends.Records
}

func (w *walls) AddAntiSpoof(_ context.Context, ports []network.Port) error {
	for _, p := range ports {
		w.guarded[p.Link] = true
	}
	return nil
}

func (w *walls) RemoveAntiSpoof(_ context.Context, site string, still []network.Port) error {
	clear(w.guarded)
	for _, p := range still {
		w.guarded[p.Link] = p.Site == site
	}
	return nil
}

func (w *walls) Start(ctx context.Context, ref engine.Ref) error {
	r, err := w.records.Read(ref.Site, ref.ID)
	if err != nil {
		return err
	}
	for _, p := range network.Ports(&r.Node) {
		if !w.guarded[p.Link] {
			w.t.Errorf("node %s starts, and its port %s is not guarded", r.Name, p.Link)
		}
	}
	return w.Engine.Start(ctx, ref)
}

func (w *walls) Change(ctx context.Context, n *spec.Node) error {
	for _, p := range network.Ports(n) {
		if !w.guarded[p.Link] {
			w.t.Errorf("node %s is changed, and its port %s is not guarded", n.Name, p.Link)
		}
	}
	return w.Engine.Change(ctx, n)
}

// TestPortsAreGuarded: the ports of a node are guarded from before its start until its removal,
// even while it is stopped.
//
// Promise (Networks): A port is guarded from before its node starts until the node is destroyed,
// even while it is stopped or reboots. With network.TestAdvertisementsAreNotBelieved,
// network.TestGuardsWait.
func TestPortsAreGuarded(t *testing.T) {
	w := newWorld(t)
	on := &walls{w.host.Backends.Networks, w.below.Engine, t, map[string]bool{}, w.host.Backends.Records}
	w.host.Backends.Networks, w.host.Engines["fake"] = on, on
	w.settled(w.reach(w.up()))
	db, web := w.spelt("db"), w.spelt("web")
	step := func(kind plan.Kind, n *spec.Node) *plan.Step {
		return &plan.Step{Kind: kind, Host: "sv1", Subject: n.Name, Node: n, Old: n}
	}
	do := func(kind plan.Kind, n *spec.Node) {
		t.Helper()
		w.must(w.Do(t.Context(), step(kind, n), func(string) {}))
	}
	settle := func(kind plan.Kind, n *spec.Node) {
		t.Helper()
		w.must(w.host.Runs.DiscardUndo(t.Context(), []*plan.Step{step(kind, n)}))
	}
	guarded := func(what string, want ...*spec.Node) {
		t.Helper()
		for _, n := range []*spec.Node{db, web} {
			if got := on.guarded[n.NICs[0].HostIfName]; got != slices.Contains(want, n) {
				t.Errorf("%s: the port of %s is guarded: %t", what, n.Name, got)
			}
		}
	}
	guarded("started", db, web)
	do(plan.KillNode, db)
	settle(plan.KillNode, db)
	guarded("stopped", db, web)
	clear(on.guarded)
	do(plan.ReshapeNode, db)
	guarded("changed", db)
	do(plan.DestroyNode, db)
	guarded("destroyed", db)
	settle(plan.DestroyNode, db)
	guarded("destroyed, at the end of the run", web)
}
