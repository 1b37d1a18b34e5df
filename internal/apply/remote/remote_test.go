package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/apply"
	"orrery/internal/apply/local/memory"
	"orrery/internal/apply/remote"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/host/path"
	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/observe/routine"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/spec"
	"orrery/internal/treesync"
	"orrery/internal/treesync/sitearchive"
	"orrery/test/need"
)

// limit is the time limit, on a busy machine, for something that needs hardly any time.
const limit = time.Minute

func TestMain(m *testing.M) { os.Exit(need.InMemory(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A machine is a machine in memory whose hosts a helper offers.
type machine struct {
	dir     string
	mutex   sync.Mutex
	hosts   map[string]*memory.Host
	secrets apply.Secrets // those of the last host
	outfit  error         // of the installation
}

func (m *machine) of(key string) *memory.Host {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.hosts[key] == nil {
		m.hosts[key] = memory.New(m.dir, key, "sv2", 8, 1<<34)
	}
	return m.hosts[key]
}

func (m *machine) Host(_, key string, secrets apply.Secrets) apply.Host {
	m.secrets = secrets
	return m.of(key).Worker.Host
}

func (m *machine) Outfit(_ context.Context, engines []string, say func(string)) ([]string, error) {
	say("installing\x1b[2J lxc")
	return append([]string{"lxc"}, engines...), m.outfit
}

func (m *machine) Inspect() doctor.Facts { return doctor.Facts{{Name: "lxc", OK: true}} }

// Try returns a larger size than was asked for.
func (m *machine) Try(_ context.Context, ways []path.Route) []int {
	var all []int
	for _, w := range ways {
		all = append(all, w.Size+1)
	}
	return all
}

// A pair is a host in memory, and the same host behind a helper.
type pair struct {
	*testing.T
	machine *machine
	dirs    host.Dirs
	link    *remote.Link
	far     apply.Host
	near    *memory.Host
	ended   chan error // the result of the helper that was started last
	line    net.Conn   // its end of the connection
}

// keys are the secrets of the control host.
type keys struct {
	*secret.Keyring
	file string // of the secret password
}

func (keys) Text(_ context.Context, t spec.SecretText) ([]byte, error) {
	return []byte("rendered " + t.Path), nil
}

func newPair(t *testing.T) *pair {
	t.Helper()
	need.SameIDs(t)
	p := &pair{T: t, machine: &machine{dir: t.TempDir(), hosts: map[string]*memory.Host{}}}
	p.dirs = host.Dirs{State: p.machine.dir + "/state", Run: p.machine.dir + "/run"}
	// if the test runs as root, a tmpfs may be mounted there for secrets
	t.Cleanup(func() { _ = unix.Unmount(p.dirs.Run, unix.MNT_DETACH) })
	p.near = p.machine.of("s")
	p.link = p.open("1")
	p.far = p.link.Host("s", p.keyring())
	return p
}

func (p *pair) keyring() keys {
	p.Helper()
	path := filepath.Join(p.TempDir(), "password")
	must(p, os.WriteFile(path, []byte("hunter22"), 0o600))
	return keys{secret.NewKeyring(&site.Site{Name: "s", Secrets: []site.Secret{{Name: "password", File: path}}}, p.dirs),
		path}
}

// open connects to a helper of the machine.
func (p *pair) open(version string) *remote.Link {
	p.Helper()
	l, err := p.try(version)
	must(p, err)
	p.Cleanup(l.Close)
	return l
}

func (p *pair) try(version string) (*remote.Link, error) {
	p.Helper()
	return p.connect(p.machine, version)
}

// to connects to a helper of another machine.
func (p *pair) to(m remote.Machine, version string) *remote.Link {
	p.Helper()
	l, err := p.connect(m, version)
	must(p, err)
	p.Cleanup(l.Close)
	return l
}

func (p *pair) connect(m remote.Machine, version string) (*remote.Link, error) {
	p.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(p, err)
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		ends[i], err = net.FileConn(f)
		must(p, err)
		f.Close()
	}
	p.line, p.ended = ends[1], make(chan error, 1)
	ended := p.ended
	go func() {
		ended <- remote.Serve(context.Background(), ends[1], m, remote.Greeting{Version: "1", Hostname: "far", Machine: "m1"})
	}()
	ctx, cancel := context.WithTimeout(p.Context(), limit)
	defer cancel()
	return remote.Open(ctx, "sv2", ends[0], version, func(cause error) error {
		return problem.New(problem.Failed, "host sv2: the connection has ended").Because(cause)
	})
}

// TestGreeting: both ends know the identity of the other.
func TestGreeting(t *testing.T) {
	p := newPair(t)
	if l := p.link; l.Hostname != "far" || l.Machine != "m1" || l.Took <= 0 || l.Skew.Abs() > l.Took {
		t.Errorf("the greeting is %+v", l)
	}
	if _, err := p.try("2"); !problem.Is(err, problem.Unable) ||
		!strings.Contains(err.Error(), "host sv2: the helper there is of version 1, and this program of 2") {
		t.Errorf("a helper of another version: %v", err)
	}
	ways := []path.Route{{From: netip.MustParseAddr("10.8.1.2"), To: netip.MustParseAddr("10.8.1.1"), Size: 1500}}
	if sizes, err := p.link.Try(t.Context(), ways); err != nil || !slices.Equal(sizes, []int{1500}) {
		t.Errorf("of a packet of 1500 bytes arrive %v (%v)", sizes, err)
	}
	if facts, err := p.link.Inspect(t.Context()); err != nil || len(facts) != 1 || facts[0].Name != "lxc" {
		t.Errorf("%v, %v", facts, err)
	}
}

const siteFile = `
[site]
name = "s"
[host.sv2]
address = "ops@10.8.1.2"
[network.lan]
subnet = "10.99.1.0/24"
[image.debian]
suite = "bookworm"
[node."web{1..3}"]
id = 21
roles = ["web"]
`

// load returns the site with nodes of the engine in memory.
func (p *pair) load() *site.Site {
	p.Helper()
	dir := p.TempDir()
	must(p, os.WriteFile(filepath.Join(dir, "site.toml"), []byte(siteFile), 0o644))
	must(p, os.MkdirAll(filepath.Join(dir, "roles/web"), 0o755))
	must(p, os.WriteFile(filepath.Join(dir, "roles/web/role.toml"), []byte("[[health]]\ncommand = [\"ask\"]\n"), 0o644))
	s, err := sitefile.Load(dir)
	must(p, err)
	for i := range s.Nodes {
		s.Nodes[i].Engine = "fake"
	}
	return s
}

// up brings the site up through the helper, and returns the number of steps.
func (p *pair) up(s *site.Site) int {
	p.Helper()
	packer := pack.New(s, nil)
	seen, err := p.far.State.Observe(p.Context(), []string{"fake"})
	must(p, err)
	steps, err := plan.Up(s, []observe.Host{seen}, plan.Goal{})
	must(p, err)
	var details []string
	for _, step := range steps.Steps {
		whole, err := packer.Pack(step, func() (*site.Site, error) { return s, nil })
		must(p, err)
		if err := p.far.Runs.Do(p.Context(), whole, func(text string) { details = append(details, text) }); err != nil {
			p.Fatalf("%v: %v", step, err)
		}
	}
	must(p, p.far.Runs.DiscardUndo(p.Context(), steps.Steps))
	return len(steps.Steps)
}

// TestSteps: a site comes up through a helper, both ends observe the same, and a second plan is
// empty.
func TestSteps(t *testing.T) {
	p := newPair(t)
	s := p.load()
	letGo, err := p.far.Runs.Lock(t.Context(), host.Holder{Who: "ada"})
	must(t, err)
	defer letGo()
	must(t, p.far.Runs.Sweep(t.Context()))
	if n := p.up(s); n < 10 {
		t.Errorf("%d steps", n)
	}
	if n := p.up(s); n != 0 {
		t.Errorf("a second plan has %d steps", n)
	}
	far, err := p.far.State.Observe(t.Context(), []string{"fake"})
	must(t, err)
	near, err := p.near.Worker.State.Observe(t.Context(), []string{"fake"})
	must(t, err)
	far.Disk, near.Disk = nil, nil // other processes write to the disk during the test
	same(t, far, near)
	nodes, err := p.far.Nodes.List(t.Context())
	must(t, err)
	if len(nodes) != 3 || nodes[0].State != observe.Running {
		t.Fatalf("the nodes are %+v", nodes)
	}
	must(t, p.far.State.SetSiteID(t.Context(), "a1"))
	present, err := p.far.Nodes.WithOwner(t.Context(), apply.InspectFull)
	must(t, err)
	here, err := p.near.Worker.Nodes.WithOwner(t.Context(), apply.InspectFull)
	must(t, err)
	if same(t, present, here); present.Origin != "a1" || len(present.Nodes) != 3 {
		t.Errorf("present are %+v", present)
	}
	nodes[0].Drift = []observe.Drift{{Kind: "old"}}
	wanted := append([]observe.Node(nil), nodes...)
	must(t, p.far.Nodes.DetectDrift(t.Context(), nodes, make([]apply.DesiredNode, len(nodes))))
	must(t, p.near.Worker.Nodes.DetectDrift(t.Context(), wanted, make([]apply.DesiredNode, len(nodes))))
	same(t, nodes, wanted)
	for _, before := range []map[int]host.Sample{nil, {}} {
		read, err := p.far.Nodes.ReadUsage(t.Context(), nodes, before)
		must(t, err)
		if len(read) != len(nodes) || (read[0].Usage == nil) != (before == nil) {
			t.Errorf("of %d nodes, since %v, was read %+v", len(nodes), before, read)
		}
	}
}

// same compares two values by their JSON, which is what is sent, and checks that nothing is lost in
// it.
func same[T any](t *testing.T, far, near T) {
	t.Helper()
	a, err := json.Marshal(far)
	must(t, err)
	b, err := json.Marshal(near)
	must(t, err)
	var back T
	must(t, json.Unmarshal(b, &back))
	if string(a) != string(b) || !reflect.DeepEqual(far, back) {
		t.Errorf("from the far end it is\n%s\nand from the near one\n%s", a, b)
	}
}

// TestLock: the helper holds the lock, and another caller is told who has it. The lock is released
// when the connection ends.
//
// Promise (Other hosts): The site's lock on another host ends with the connection, and so does
// everything in progress. With apply/remote.TestStops, test.TestFleet.
func TestLock(t *testing.T) {
	p := newPair(t)
	letGo, err := p.far.Runs.Lock(t.Context(), host.Holder{Who: "ada", Command: "orrery up"})
	must(t, err)
	other := p.open("1")
	grace := other.Host("s", p.keyring())
	if _, err := grace.Runs.Lock(t.Context(), host.Holder{Who: "grace"}); !problem.Is(err, problem.Locked) ||
		!strings.Contains(err.Error(), "ada at ") || !strings.Contains(err.Error(), "host sv2: /") {
		t.Errorf("it is held: %v", err)
	}
	letGo()
	letGo, err = grace.Runs.Lock(t.Context(), host.Holder{Who: "grace"})
	must(t, err)
	other.Close()
	must(t, <-p.ended)
	letGo() // the helper is gone
	if letGo, err = p.far.Runs.Lock(t.Context(), host.Holder{Who: "ada"}); err != nil {
		t.Fatal(err)
	}
	letGo()
}

// TestRecords: the journal, releases and logs of a host are read and written through a helper.
func TestRecords(t *testing.T) {
	p := newPair(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	j, err := p.far.Runs.OpenJournal(ctx)
	must(t, err)
	for _, kind := range []string{"begin", "end"} {
		must(t, j.Add(journal.Entry{Kind: kind, Run: "1"}))
		interrupt() // the end of an interrupted run is recorded, too
	}
	must(t, j.Close())
	all, damaged, err := p.far.Runs.ReadJournal(t.Context(), 0)
	if err != nil || len(all) != 2 || all[1].Kind != "end" || len(damaged) > 0 {
		t.Errorf("the journal has %v, %v, %v", all, damaged, err)
	}
	r := observe.Releases{Active: map[string]int{"web1": 700}}
	must(t, p.far.Releases.Write(t.Context(), r))
	back, err := p.far.Releases.Read(t.Context())
	must(t, err)
	if back.Active["web1"] != 700 || back.ID == "" {
		t.Errorf("on record is %+v", back)
	}
	must(t, p.far.Releases.Write(t.Context(), observe.Releases{Active: map[string]int{"web1": 701}}))
	must(t, p.far.Releases.Copy(t.Context(), back))
	again, err := p.far.Releases.Read(t.Context())
	must(t, err)
	same(t, again, back)
	if err := p.far.Releases.SendEdition(t.Context(), 700, new(bytes.Buffer)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an edition that is not there: %v", err)
	}
	made := t.TempDir()
	must(t, os.Mkdir(made+"/site", 0o700))
	must(t, os.WriteFile(made+"/site/site.toml", []byte(strings.Repeat("a line of a site\n", 20_000)), 0o600))
	digest, err := sitearchive.Digest(made)
	must(t, err)
	keep := func(release int, digest string, send func(io.ReadWriter) error) error {
		return treesync.Pipe(t.Context(), send, func(rw io.ReadWriter) error {
			return p.far.Releases.KeepEdition(t.Context(), release, digest, rw)
		})
	}
	send := func(rw io.ReadWriter) error { return sitearchive.Send(t.Context(), made, rw) }
	if err := keep(700, "sha256:00", send); err == nil || !strings.Contains(err.Error(), "its digest is "+digest) {
		t.Errorf("an edition with another digest: %v", err)
	}
	must(t, keep(700, digest, send))
	kept, err := p.far.Releases.Editions(t.Context(), []int{700, 701})
	must(t, err)
	same(t, kept, map[int]string{700: digest})
	var came string
	must(t, treesync.Pipe(t.Context(), func(rw io.ReadWriter) (err error) {
		came, err = sitearchive.Receive(t.Context(), rw, t.TempDir())
		return err
	}, func(rw io.ReadWriter) error { return p.far.Releases.SendEdition(t.Context(), 700, rw) }))
	same(t, came, digest)
	strange := func(rw io.ReadWriter) error {
		if _, err := treesync.NewStream(rw); err != nil {
			return err
		}
		_, err := io.WriteString(rw, "no edition")
		return err
	}
	if err := keep(701, digest, strange); err == nil || !strings.Contains(err.Error(), "release 701 was not received") {
		t.Errorf("what is no edition: %v", err)
	}
	if err := keep(700, digest, func(io.ReadWriter) error { return errors.New("lost") }); err == nil {
		t.Error("an edition is kept that was cut short")
	}
	if kept, err = p.far.Releases.Editions(t.Context(), []int{700, 701}); err != nil || len(kept) != 1 {
		t.Errorf("after that, kept are %v: %v", kept, err)
	}
	p.receives()
	if _, err := p.far.Nodes.Log(t.Context(), "web1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log that is not there: %v", err)
	}
	long := strings.Repeat("a line of a log\n", 20_000)
	must(t, os.MkdirAll(p.dirs.Logs("s"), 0o755))
	must(t, os.WriteFile(filepath.Join(p.dirs.Logs("s"), "web1.log"), []byte(long), 0o600))
	must(t, os.WriteFile(filepath.Join(p.dirs.Logs("s"), "web2.log"), nil, 0o600))
	for node, want := range map[string]string{"web1": long, "web2": ""} {
		log, err := p.far.Nodes.Log(t.Context(), node)
		must(t, err)
		text, err := io.ReadAll(log)
		must(t, err)
		must(t, log.Close())
		if string(text) != want {
			t.Errorf("the log of %s has %d bytes of %d", node, len(text), len(want))
		}
	}
}

// TestOutfit: a host reports what it installs, and errors.
func TestOutfit(t *testing.T) {
	p := newPair(t)
	var said []string
	got, err := p.link.Outfit(t.Context(), []string{"kvm"}, func(text string) { said = append(said, text) })
	if err != nil || strings.Join(got, " ") != "lxc kvm" || strings.Join(said, "|") != `installing\x1b[2J lxc` {
		t.Errorf("%v, %q, %v", got, said, err)
	}
	p.machine.outfit = problem.New(problem.Failed, "apt-get install lxc failed").Try("by hand")
	if _, err := p.link.Outfit(t.Context(), nil, func(string) {}); err == nil ||
		!strings.Contains(err.Error(), "host sv2: apt-get install lxc failed (by hand)") {
		t.Errorf("that failed: %v", err)
	}
}

// TestForget: the files of a site are removed from a host, but not while there is something that a
// user would miss.
func TestForget(t *testing.T) {
	p := newPair(t)
	must(t, p.far.State.SetCordoned(t.Context(), &observe.Drain{Who: "ada"}))
	must(t, os.MkdirAll(filepath.Join(p.dirs.State, "helper", "abc"), 0o755))
	layer := filepath.Join(p.dirs.State, "store", "ab315c39")
	for _, dir := range []string{layer, p.dirs.State + "/store/.lock", p.dirs.State + "/store/.staging",
		p.dirs.State + "/sites/.other-new"} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(layer, "layer.json"), []byte("{}"), 0o644))
	for dir, word := range map[string]string{
		p.dirs.Volumes("s") + "/data/db": "volumes of the site are still on this host: data",
		p.dirs.Snapshots("s") + "/one":   "snapshots of the site are still on this host: one",
	} {
		must(t, os.MkdirAll(dir, 0o755))
		if _, err := p.far.State.Forget(t.Context()); !problem.Is(err, problem.Surprise) ||
			!strings.Contains(err.Error(), word) {
			t.Errorf("with %s: %v", dir, err)
		}
		must(t, os.RemoveAll(dir)) // the directory of the volume stays, as when its data is deleted
	}
	other := p.dirs.Site("other")
	must(t, os.MkdirAll(other, 0o755))
	left, err := p.far.State.Forget(t.Context())
	if err != nil || len(left) != 2 || !strings.Contains(left[0], "1 layer in "+p.dirs.State+"/store") ||
		!strings.Contains(left[1], "helper") {
		t.Errorf("left is %q: %v", left, err)
	}
	if _, err := os.Stat(p.dirs.Site("s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was kept of it: %v", err)
	}
	must(t, os.RemoveAll(other))
	left, err = p.far.State.Forget(t.Context())
	if err != nil || len(left) != 1 {
		t.Errorf("left is %q: %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(p.dirs.State, "helper")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the programs of helpers: %v", err)
	}
}

// TestDrainMark: the mark that a host is drained is on the host, for the site. Every caller sees it
// until it is removed. A mark that cannot be read is an error.
func TestDrainMark(t *testing.T) {
	p := newPair(t)
	wants := func(want *observe.Drain) {
		t.Helper()
		for _, h := range []apply.Host{p.far, p.link.Host("s", p.keyring())} {
			seen, err := h.State.Observe(t.Context(), nil)
			must(t, err)
			same(t, seen.Drained, want)
			alone, err := h.State.Cordoned(t.Context())
			must(t, err)
			same(t, alone, want)
			if seen.Disk == nil || seen.Disk.Free <= 0 || seen.Disk.Free > seen.Disk.Total {
				t.Errorf("its disk is %+v", seen.Disk)
			}
		}
	}
	wants(nil)
	mark := &observe.Drain{Who: "ada", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	must(t, p.far.State.SetCordoned(t.Context(), mark))
	must(t, p.far.State.SetCordoned(t.Context(), mark))
	wants(mark)
	if seen, err := p.link.Host("other", p.keyring()).State.Observe(t.Context(), nil); err != nil || seen.Drained != nil {
		t.Errorf("another site has %+v: %v", seen.Drained, err)
	}
	must(t, os.WriteFile(filepath.Join(p.dirs.Site("s"), "drained.json"), []byte("{"), 0o600))
	if _, err := p.far.State.Observe(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "drained.json") {
		t.Errorf("half a mark: %v", err)
	}
	must(t, p.far.State.SetCordoned(t.Context(), nil))
	must(t, p.far.State.SetCordoned(t.Context(), nil))
	wants(nil)
}

// TestRoutines: how a routine went is the same at both ends, and what a host says of it is shown as
// text. A damaged record is an error, and its successor replaces it.
func TestRoutines(t *testing.T) {
	p := newPair(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r, err := p.far.State.Routine(t.Context(), routine.Backup)
	must(t, err)
	same(t, r, routine.Record{})
	wrote := routine.Record{Begun: at, Done: at, Host: "sv1", Made: "a", Failures: 2, Why: "\x1b[2J"}
	must(t, p.far.State.SaveRoutine(t.Context(), routine.Backup, wrote))
	r, err = p.far.State.Routine(t.Context(), routine.Backup)
	must(t, err)
	wrote.Why = `\x1b[2J`
	same(t, r, wrote)
	path := filepath.Join(p.dirs.Site("s"), "routines", "backup.json")
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err = p.far.State.Routine(t.Context(), routine.Backup); err == nil ||
		!strings.Contains(err.Error(), "backup.json") {
		t.Errorf("half a record: %v", err)
	}
	must(t, p.far.State.SaveRoutine(t.Context(), routine.Backup, wrote))
	for _, name := range []string{"../x", "", "a/b"} {
		if err := p.far.State.SaveRoutine(t.Context(), name, wrote); err == nil {
			t.Errorf("%q is the name of a routine", name)
		}
		if _, err := p.far.State.Routine(t.Context(), name); err == nil {
			t.Errorf("%q is the name of a routine", name)
		}
	}
}

// TestErrors: an error is the same at both ends: its kind, text, and place.
func TestErrors(t *testing.T) {
	p := newPair(t)
	p.up(p.load())
	nodes, err := p.far.Nodes.List(t.Context())
	must(t, err)
	other := nodes[0].Node
	other.Engine = "kvm"
	_, near := p.near.Worker.Nodes.Runner(&other)
	in, err := p.far.Nodes.Runner(&other)
	must(t, err)
	far := in.Run(t.Context(), host.Command{Args: []string{"true"}})
	if !problem.Is(far, problem.Unable) || !strings.Contains(far.Error(), near.Error()) {
		t.Errorf("from the far end it is %v, and from the near one %v", far, near)
	}
	err = p.far.Runs.Do(t.Context(), &plan.Step{Kind: plan.StopNode, Node: &other}, func(string) {})
	if !problem.Is(err, problem.Unable) || !strings.HasPrefix(err.Error(), "host sv2: ") {
		t.Errorf("a step: %v", err)
	}
	p.near.Command = func(context.Context, engine.Ref, host.Command) error {
		return &host.RunError{Place: "web1", Command: []string{"ask"}, Status: 3, Output: "no\n",
			Err: errors.New("exit status 3")}
	}
	in, err = p.far.Nodes.Runner(&nodes[0].Node)
	must(t, err)
	var run *host.RunError
	if err := in.Run(t.Context(), host.Command{Args: []string{"ask"}}); !errors.As(err, &run) || run.Status != 1 {
		t.Errorf("a command: %v", err)
	}
	if _, err := p.far.Nodes.Console(&nodes[0].Node); !problem.Is(err, problem.Unable) {
		t.Errorf("a console: %v", err)
	}
}

// A curious host requests secrets for each step, and reports what it got.
type curious struct {
	apply.RunHost
	secrets apply.Secrets
}

func (c curious) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	for range 2 {
		v, err := c.secrets.Value(ctx, s.Subject)
		if err != nil {
			return err
		}
		say(v)
	}
	text, err := c.secrets.Text(ctx, spec.SecretText{Node: "web1", Role: "web", Path: "/etc/x"})
	if err != nil {
		return err
	}
	say(string(text))
	say(c.secrets.Redact("it is hunter22"))
	return nil
}

type curiousMachine struct{ machine }

func (m *curiousMachine) Host(_, key string, secrets apply.Secrets) apply.Host {
	m.secrets = secrets
	h := m.of(key).Worker.Host
	h.Runs = curious{h.Runs, secrets}
	return h
}

// TestSecrets: the helper requests a secret once, when a step needs it, and knows which values must
// not be displayed. It gets nothing that the step does not need, and nothing without a step.
//
// Promise (Other hosts): A host is given no secret that its nodes do not need; what it says of
// secrets, snapshots and its journal is bounded, allow-listed and shown without control characters.
// With control.TestForgedRole, apply/remote.TestHostileSecret, apply/remote.TestHostileSnapshots,
// apply/remote.TestHostileJournal, control.TestSecretOfStranger.
//
// Promise (Other hosts): A host gets a secret only while a step is done there, or at a rotation for
// its nodes, and its logs do not show it. With control.TestRotate.
func TestSecrets(t *testing.T) {
	p := newPair(t)
	m := &curiousMachine{machine{dir: p.machine.dir, hosts: map[string]*memory.Host{}}}
	l := p.to(m, "1")
	k := p.keyring()
	k.Add("foreign", "of other hosts")
	asked := &counting{keys: k}
	h := l.Host("s", asked)
	step := func(of string, needs ...string) *plan.Step {
		s := &plan.Step{Kind: plan.CheckNode, Subject: of, Node: &spec.Node{Name: "web1"}}
		r := spec.RoleAction{Role: &site.Role{Name: "web"},
			Rendered: []spec.RenderedFile{{Path: "/etc/x", Secret: true}, {Path: "/etc/open"}}}
		for _, name := range needs {
			r.Secrets = append(r.Secrets, site.SecretUse{Name: name})
		}
		s.Duties = &spec.RoleActions{Node: "web1", Roles: []spec.RoleAction{r}}
		return s
	}
	var said []string
	must(t, h.Runs.Do(t.Context(), step("password", "password"), func(text string) { said = append(said, text) }))
	if got, want := strings.Join(said, ", "),
		"hunter22, hunter22, rendered /etc/x, it is <secret password>"; got != want || asked.times != 1 {
		t.Errorf("asked %d times, the host got %s", asked.times, got)
	}
	if _, knows := m.secrets.Fetched()["foreign"]; knows {
		t.Error("a host knows a secret that none of its nodes needs")
	}
	lacking := p.keyring()
	must(t, os.Remove(lacking.file))
	err := p.to(m, "1").Host("s", lacking).Runs.Do(t.Context(), step("password", "password"), func(string) {})
	if want := "control host: " + lacking.file + ": secret password cannot be read"; !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("without the file of a secret: %v, not %s", err, want)
	}
	err = h.Runs.Do(t.Context(), step("other", "other"), func(string) {})
	if !problem.Is(err, problem.Mistake) || !strings.Contains(err.Error(), `secret "other" is not declared`) {
		t.Errorf("one that is not declared: %v", err)
	}
	m.secrets = nil
	other := step("password", "password")
	other.Duties.Roles[0].Rendered = other.Duties.Roles[0].Rendered[1:]
	for what, s := range map[string]*plan.Step{"another secret": step("password"), "another file": other,
		"no role": {Kind: plan.ForgetNames, Subject: "password"}} {
		said = nil
		err := p.to(m, "1").Host("s", k).Runs.Do(t.Context(), s, func(text string) { said = append(said, text) })
		if !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), "the helper requested a secret that none of its steps needs") ||
			what != "another file" && said != nil {
			t.Errorf("%s: the host got %s: %v", what, said, err)
		}
	}
	if _, err := m.secrets.Value(t.Context(), "other"); err == nil {
		t.Error("nobody asked for a step, and a secret was given")
	}
}

// TestSecretsOfNodes: during a step of a node, the helper gets the node's own value of a secret, and not that of
// another node or one that all nodes have.
func TestSecretsOfNodes(t *testing.T) {
	p := newPair(t)
	m := &curiousMachine{machine{dir: p.machine.dir, hosts: map[string]*memory.Host{}}}
	k := p.keyring()
	for _, stored := range []string{"key", "key@web1", "key@web2"} {
		k.Add(stored, "the value of "+stored)
	}
	h := p.to(m, "1").Host("s", k)
	for stored, want := range map[string]string{"key@web1": "the value of key@web1", "key@web2": "", "key": ""} {
		r := spec.RoleAction{Role: &site.Role{Name: "web", Secrets: []site.SecretUse{{Name: "key"}}},
			Rendered: []spec.RenderedFile{{Path: "/etc/x", Secret: true}}}
		s := &plan.Step{Kind: plan.CheckNode, Subject: stored, Node: &spec.Node{Name: "web1"}}
		s.Duties = &spec.RoleActions{Node: "web1", Roles: []spec.RoleAction{r}, OwnSecrets: []string{"key"}}
		var said []string
		err := h.Runs.Do(t.Context(), s, func(text string) { said = append(said, text) })
		if want == "" && (!problem.Is(err, problem.Unable) || len(said) > 0) ||
			want != "" && (err != nil || said[0] != want) {
			t.Errorf("%s: the host got %q, %v", stored, said, err)
		}
		for name := range m.secrets.Fetched() {
			if name != "key@web1" {
				t.Errorf("the host knows %s", name)
			}
		}
	}
}

// TestKeptSecrets: a host stores generated secrets, and does not replace an existing one.
func TestKeptSecrets(t *testing.T) {
	p := newPair(t)
	if _, err := p.far.Secrets.Read(t.Context(), "db"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	for range 2 {
		must(t, p.far.Secrets.Store(t.Context(), "db", secret.Stored{Value: "abcDEF123", Generation: 1}))
	}
	if v, err := p.far.Secrets.Read(t.Context(), "db"); v.Value != "abcDEF123" || err != nil {
		t.Errorf("kept is %+v: %v", v, err)
	}
	other := secret.Stored{Value: "abcDEF124", Generation: 2}
	if err := p.far.Secrets.Store(t.Context(), "db", other); !problem.Is(err, problem.Surprise) {
		t.Errorf("another value: %v", err)
	}
	must(t, p.far.Secrets.Replace(t.Context(), "db", other))
	if s, err := p.far.Secrets.Read(t.Context(), "db"); s != other || err != nil {
		t.Errorf("rotated it is %+v: %v", s, err)
	}
	must(t, p.far.Secrets.Store(t.Context(), "db@web1", secret.Stored{Value: "abcDEF125", Generation: 1}))
	must(t, p.far.Secrets.Remove(t.Context(), "db@web1"))
	must(t, p.far.Secrets.Remove(t.Context(), "db@web1"))
	if _, err := p.far.Secrets.Read(t.Context(), "db@web1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that was removed: %v", err)
	}
	for _, name := range []string{"", "../keys", ".x", "a\x00b"} {
		if err := p.far.Secrets.Store(t.Context(), name, secret.Stored{Value: "abcDEF123", Generation: 1}); err == nil {
			t.Errorf("a secret is kept that is called %q", name)
		}
	}
	info, err := os.Stat(filepath.Join(p.dirs.Secrets("s"), "db"))
	if must(t, err); info.Mode() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
}

// counting counts how often a value is requested.
type counting struct {
	keys
	times int
}

func (c *counting) Value(ctx context.Context, name string) (string, error) {
	if name == "password" {
		c.times++
	}
	return c.keys.Value(ctx, name)
}

// TestStops: a cancelled step is waited for. A step whose connection ends is stopped on the remote
// host.
func TestStops(t *testing.T) {
	p := newPair(t)
	s := p.load()
	p.up(s)
	nodes, err := p.far.Nodes.List(t.Context())
	must(t, err)
	begun, ended := make(chan bool, 8), make(chan error, 8)
	p.near.Command = func(ctx context.Context, _ engine.Ref, _ host.Command) error {
		begun <- true
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return context.Cause(ctx)
	}
	in, err := p.far.Nodes.Runner(&nodes[0].Node)
	must(t, err)
	went := make(chan error, 1)
	go func() { went <- in.Run(context.Background(), host.Command{Args: []string{"wait"}}) }()
	<-begun
	must(t, p.line.Close())
	<-ended
	if err := <-went; !problem.Is(err, problem.Failed) ||
		!strings.Contains(err.Error(), "host sv2: the connection has ended") {
		t.Errorf("the command ended with %v", err)
	}
	if err := p.far.Runs.Sweep(t.Context()); !problem.Is(err, problem.Failed) ||
		!strings.Contains(err.Error(), "host sv2: the connection has ended") {
		t.Errorf("what comes then: %v", err)
	}
}
