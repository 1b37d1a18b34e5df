package control_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/apply/local/memory"
	"orrery/internal/apply/remote"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/overdue"
	"orrery/internal/control/register"
	"orrery/internal/control/routines"
	"orrery/internal/control/status"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/host/path"
	"orrery/internal/host/schedule"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/treesync/chunks"
	"orrery/internal/volume"
	"orrery/test/need"
)

func TestMain(m *testing.M) { os.Exit(need.InMemory(m)) }

// A machine has nodes, networks, layers and settings in memory. Its other files, which any user may
// write, are in temporary directories. The real worker carries out the steps on it. It outlives
// sessions, as a real machine outlives processes.
type machine struct {
	t     *testing.T
	dirs  host.Dirs
	fault *fake.Faults
	disk  bool // node data is in directories, for snapshots and backups; otherwise it is in memory, too

	others  map[string]*machine // reachable machines, by host name
	facts   doctor.Facts
	arrives int                                   // largest packet to another host, or 0 for no limit
	slow    func()                                // called before each command in a node, or nil
	line    func() (near, far io.ReadWriteCloser) // connection to another machine, or nil for a socket
	bench   remote.ExperimentRunner               // runs experiments for others, or nil
	mishaps *mishaps                              // failures of calls to the machine, or nil
	name    string                                // name of the machine in mishaps

	mu      sync.Mutex
	hosts   map[string]*fake.Host // by site
	disks   map[string]*fake.Disk // disks of the hosts
	waiting []schedule.Pending
	noLater error // error for jobs to be run later, or nil

	lines  map[string]net.Conn // to other machines
	served sync.WaitGroup      // helpers at the far ends
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	need.SameIDs(t)
	run := filepath.Join(need.MemoryDir(t), "run") // like /run; otherwise root mounts a tmpfs there
	return &machine{t: t, dirs: host.Dirs{State: filepath.Join(t.TempDir(), "state"), Run: run}, fault: &fake.Faults{},
		hosts: map[string]*fake.Host{}, disks: map[string]*fake.Disk{}}
}

// of returns the nodes of a site in memory.
func (m *machine) of(key string) *fake.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hosts[key] == nil {
		m.hosts[key] = fake.NewHost(key, "local", 8, 1<<34)
		m.hosts[key].Faults = m.fault
		m.hosts[key].Command = func(context.Context, engine.Ref, host.Command) error {
			if m.slow != nil {
				m.slow()
			}
			return nil
		}
		if m.disk {
			m.disks[key] = m.hosts[key].OnDisk(m.dirs)
		}
	}
	return m.hosts[key]
}

// ofUser assigns nodes the ids of this user, and starts no unit at boot.
type ofUser struct{}

func (ofUser) Idmap(engine.Ref) (int, error)                        { return os.Geteuid(), nil }
func (ofUser) Disable(context.Context, engine.Ref, ...string) error { return nil }
func (ofUser) Inject(context.Context, engine.Ref, ...host.File) error {
	return errors.ErrUnsupported
}

type nodesInMemory struct {
	*fake.Engine
	ofUser
}

// anySite is the engine for nodes of all sites.
type anySite struct {
	nodesInMemory
	*machine
}

// List returns the nodes of all sites.
func (m anySite) List(ctx context.Context, _ string) (all []observe.Node, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for site, h := range m.hosts {
		nodes, wrong := h.List(ctx, site)
		all, err = append(all, nodes...), errors.Join(err, wrong)
	}
	return all, err
}

type nodesOnDisk struct {
	*fake.Disk
	ofUser
}

type inMemory = fake.Layers

// OpenRoot returns the files of a node as directories, without the files of its layers.
func (n nodesOnDisk) OpenRoot(ref engine.Ref) (*tree.Root, error) { return tree.Open(n.Private(ref)) }

// layersOnDisk are empty trees with records.
type layersOnDisk struct {
	inMemory
	store *image.Store
}

// Layers returns the layers that were built, and those that were added to the store in other ways.
func (l layersOnDisk) Layers() (map[string]bool, error) {
	kept, err := l.store.Layers()
	if err != nil {
		return nil, err
	}
	l.Add(kept)
	return l.inMemory.Layers()
}

func (l layersOnDisk) Record(digest string) (*image.Record, error) { return l.store.Record(digest) }
func (l layersOnDisk) Tree(digest string) string                   { return l.store.Tree(digest) }

func (l layersOnDisk) BuildBase(ctx context.Context, layer *spec.Layer, m site.Mirror, say func(string)) error {
	return errors.Join(l.inMemory.BuildBase(ctx, layer, m, say), l.keep(layer))
}

func (l layersOnDisk) BuildLayer(ctx context.Context, layer *spec.Layer, m site.Mirror,
	fill func(context.Context, host.Runner) error, say func(string)) error {
	return errors.Join(l.inMemory.BuildLayer(ctx, layer, m, fill, say), l.keep(layer))
}

func (l layersOnDisk) Download(ctx context.Context, layer *spec.Layer, content string, from []chunks.Source, say,
	doubt func(string)) error {
	if err := l.inMemory.Download(ctx, layer, content, from, say, doubt); err != nil {
		return err
	}
	return l.keep(layer)
}

func (l layersOnDisk) keep(layer *spec.Layer) error {
	r := image.Record{Digest: layer.Digest, Title: layer.Title, Base: layer.Base, Below: layer.Below, Parts: layer.Parts,
		Content: "c0de", Built: time.Now().UTC()}
	text, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(l.store.Tree(layer.Digest), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(l.store.Dir, layer.Digest, "layer.json"), text, 0o600)
	}
	for _, name := range []string{"passwd", "group"} {
		if err == nil {
			err = host.WriteFile(host.File{Path: filepath.Join(l.store.Tree(layer.Digest), "etc", name),
				Content: []byte("root:x:0:0:::\n"), Mode: 0o644})
		}
	}
	var nothing bytes.Buffer
	if err == nil {
		err = gzip.NewWriter(&nothing).Close()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(l.store.Dir, layer.Digest, "manifest.gz"), nothing.Bytes(), 0o600)
	}
	return err
}

// Allowed allows every caller.
func (m *machine) Allowed() error { return nil }

// Host returns the machine as a host of a site.
func (m *machine) Host(name, key string, secrets apply.Secrets) apply.Host {
	in := m.of(key)
	var e engine.Engine = nodesInMemory{Engine: in.Engine}
	if m.disk && key != "" {
		e = nodesOnDisk{Disk: m.disks[key]}
	}
	if key == "" {
		e = anySite{e.(nodesInMemory), m}
	}
	store := image.Open(m.dirs.State)
	h := local.ThisMachine(name, key, m.dirs, map[string]engine.Engine{"lxc": e}, secrets)
	h.Waiter = m
	records := h.Backends.Records
	h.Backends = memory.Backends(in, m.dirs)
	h.Backends.Volumes = volumesInMemory{m}
	if m.disk {
		h.Backends.Layers, h.Backends.Records = layersOnDisk{h.Backends.Layers.(fake.Layers), store}, records
	}
	if m.mishaps != nil {
		return frail{m.mishaps, m.name}.host(h.Host)
	}
	return h.Host
}

// Reach connects to a helper on another machine, as over ssh.
func (m *machine) Reach(ctx context.Context, h site.Host) (*remote.Link, error) {
	m.mu.Lock()
	other, ok := m.others[h.Name]
	m.mu.Unlock()
	if !ok {
		return nil, problem.New(problem.Failed, "host %s: nobody answers", h.Name).At(h.Address).Try("see whether it runs")
	}
	if m.line != nil {
		near, far := m.line()
		// it ends with the connection
		m.served.Go(func() { _ = remote.Serve(context.Background(), far, other, other.Self()) })
		return remote.Open(ctx, h.Name, near, "", func(cause error) error { return cause })
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "end")
		ends[i], err = net.FileConn(f)
		f.Close() //nolint:errcheck // the connection has its own
		if err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	if m.lines == nil {
		m.lines = map[string]net.Conn{}
	}
	m.lines[h.Name] = ends[0]
	m.mu.Unlock()
	// it ends with the connection
	m.served.Go(func() { _ = remote.Serve(context.Background(), ends[1], other, other.Self()) })
	return remote.Open(ctx, h.Name, ends[0], "", func(cause error) error {
		return problem.New(problem.Failed, "host %s: the connection has ended", h.Name).Because(cause)
	})
}

// lose cuts the connection to another machine, which is then unreachable.
func (m *machine) lose(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.others, name)
	_ = m.lines[name].Close()
}

// Self identifies machines by the path of their state.
func (m *machine) Self() remote.Greeting { return remote.Greeting{Machine: m.dirs.State} }

// Outfit installs what is missing, in memory.
func (m *machine) Outfit(_ context.Context, _ []string, say func(string)) (packages []string, err error) {
	for _, f := range m.facts {
		say("installing " + f.Name)
		packages = append(packages, f.Name)
	}
	m.facts = nil
	return packages, nil
}

// Measure runs an experiment for another host.
func (m *machine) Measure(ctx context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
	if m.bench == nil {
		return errors.New("nobody measures here")
	}
	return m.bench.Measure(ctx, x, tell, to)
}

// Inspect returns the facts of the test, by default that nothing is missing.
func (m *machine) Inspect() doctor.Facts { return m.facts }

// Try returns that all packets arrive, or only those up to arrives.
func (m *machine) Try(_ context.Context, ways []path.Route) []int {
	var all []int
	for _, w := range ways {
		all = append(all, max(0, min(w.Size, cmp.Or(m.arrives, w.Size))))
	}
	return all
}

// Guard does nothing, because killed operations in tests are resumed.
func (m *machine) Guard(...*spec.Node) (letGo func(), err error) { return func() {}, nil }

func (m *machine) Later(_ context.Context, l schedule.Job) error {
	if m.mishaps != nil {
		if err := m.mishaps.strike(m.name + " Later"); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noLater != nil {
		return m.noLater
	}
	// replace a job of the same name
	m.waiting = slices.DeleteFunc(m.waiting, func(w schedule.Pending) bool { return w.Name == l.Name })
	m.waiting = append(m.waiting, schedule.Pending{Name: l.Name})
	return nil
}

func (m *machine) Waiting() ([]schedule.Pending, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.waiting), nil
}

func (m *machine) Cancel(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = slices.DeleteFunc(m.waiting, func(w schedule.Pending) bool { return w.Name == name })
	return nil
}

// Volumes are real directories, without owners.
type volumesInMemory struct{ *machine }

func (m volumesInMemory) List(key string) ([]observe.Volume, error) { return volume.List(m.dirs, key) }

func (m volumesInMemory) Provide(ctx context.Context, n *spec.Node, v spec.Mount, _ volume.NodeRoot) error {
	if err, _ := m.fault.InjectedErrors(ctx, "Provide", n.Name); err != nil {
		return err
	}
	return os.MkdirAll(volume.Path(m.dirs, n.Site, n.Name, v), 0o755)
}

func (m volumesInMemory) ProvideCopy(ctx context.Context, n *spec.Node, v spec.Mount, _ volume.NodeRoot,
	still volume.FreezeFunc) (volume.CopyResult, error) {
	if err, _ := m.fault.InjectedErrors(ctx, "ProvideCopy", n.Name); err != nil {
		return volume.CopyResult{}, err
	}
	to := volume.Path(m.dirs, n.Site, n.Name, v)
	err := still(ctx, func(context.Context) error { return os.MkdirAll(to, 0o755) })
	return volume.CopyResult{}, err
}

func (m volumesInMemory) Erase(path string) error {
	if err, _ := m.fault.InjectedErrors(context.Background(), "Erase", filepath.Base(path)); err != nil {
		return err
	}
	return os.RemoveAll(path)
}
func (m volumesInMemory) Drop(n *spec.Node, v spec.Mount) error {
	if err, _ := m.fault.InjectedErrors(context.Background(), "Drop", n.Name); err != nil {
		return err
	}
	return os.RemoveAll(volume.Path(m.dirs, n.Site, n.Name, v))
}
func (m volumesInMemory) DropCopies(key string, release int) error {
	return os.RemoveAll(m.dirs.VolumeCopies(key, release))
}
func (volumesInMemory) Sweep(string) error { return nil }
func (volumesInMemory) Release() error     { return nil }

// A told watcher records its events.
type told struct {
	mu       sync.Mutex
	events   []control.Event
	steps    []string
	restarts int // number of stops of nodes that will start again
}

func (w *told) Steps(*plan.Plan, func(*plan.Step) time.Duration) control.StepWatcher { return w }
func (w *told) Bytes(string) control.ByteWatcher                                     { return w }
func (w *told) Detail(*plan.Step, string)                                            {}
func (w *told) Waits(*plan.Step, string)                                             {}
func (w *told) Add(int64)                                                            {}
func (w *told) Close()                                                               {}

func (w *told) Begin(s *plan.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Restarts {
		w.restarts++
	}
}

func (w *told) End(s *plan.Step, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, s.String())
}

func (w *told) Event(e control.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *told) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, e := range w.events {
		lines = append(lines, string(e.Kind)+": "+e.Text)
	}
	return strings.Join(lines, "\n")
}

// A desk is a site on a machine in memory, with a session that works with it.
type desk struct {
	*testing.T
	*machine
	*control.Session
	watch *told
	dir   string
	sick  bool // the health checks of web nodes of a release fail
}

const toykat = `
[site]
name = "toykat"

[network.lan]
subnet  = "10.99.1.0/24"
gateway = "10.99.1.1"

[image.debian]
suite = "bookworm"


[node.db]
id     = 11
roles  = ["db"]

[node."web{1..2}"]
id     = 21
roles  = ["web"]

[release.700]
[release.701]
`

func newDesk(t *testing.T) *desk {
	t.Helper()
	return deskOn(t, newMachine(t))
}

// diskDesk returns a desk on a machine whose nodes write into directories.
func diskDesk(t *testing.T) *desk {
	t.Helper()
	m := newMachine(t)
	m.disk = true
	return deskOn(t, m)
}

func deskOn(t *testing.T, m *machine) *desk {
	t.Helper()
	d := &desk{T: t, machine: m, watch: &told{}, dir: t.TempDir()}
	d.write("site.toml", toykat)
	d.write("roles/web/role.toml", "[[health]]\ncommand = [\"ask\"]\ntimeout = \"1s\"\nwithin = \"1s\"\n")
	d.write("roles/db/role.toml",
		"[[volume]]\nname = \"archive\"\npath = \"/srv/archive\"\n[[health]]\ncommand = [\"ask\"]\ntimeout = \"1s\"\nwithin = \"1s\"\n")
	d.Session = &control.Session{
		Dirs: d.dirs, Known: &register.KnownTwins{}, SiteDir: d.dir, Release: control.Live, Command: "orrery test",
		Links: &hosts.Links{}, Machine: d.machine, Overdue: overdue.Work{}, Routines: routines.Work{},
		Confirmer: control.AssumeYes{},
		Watcher:   d.watch,
	}
	t.Cleanup(d.Links.Close)
	d.of("toykat").Command = func(_ context.Context, ref engine.Ref, c host.Command) error {
		if d.sick && c.Args[0] == "ask" && strings.HasPrefix(ref.Name, "web") && ref.ID > 1000 {
			return errors.New("it does not answer")
		}
		return nil
	}
	return d
}

func (d *desk) write(name, text string) {
	d.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.Fatal(err)
	}
}

// site reads the site directory, as each operation does.
func (d *desk) site() *site.Site {
	d.Helper()
	s, err := d.Load()
	if err != nil {
		d.Fatal(err)
	}
	return s
}

// nodes returns the nodes as "NAME RELEASE STATE HEALTH", with a star for those in quarantine.
func (d *desk) nodes() string {
	d.Helper()
	status, err := status.Read(d.Context(), d.Session, d.site(), nil)
	if err != nil {
		d.Fatal(err)
	}
	var all []string
	for _, n := range status.Nodes {
		star := ""
		if n.Quarantine {
			star = "*"
		}
		all = append(all, strings.Join([]string{n.Node + star, site.ReleaseName(n.Release), n.State, n.Health}, " "))
	}
	return strings.Join(all, ", ")
}

func (d *desk) wantNodes(want string) {
	d.Helper()
	if got := d.nodes(); got != want {
		d.Errorf("the nodes are %s\nnot %s", got, want)
	}
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatalf("%v\ntold: %s", err, d.watch.text())
	}
}

// networks returns the names of the existing networks.
func (d *desk) networks() string {
	d.Helper()
	all, err := d.of("toykat").Networks().Observe("toykat")
	d.must(err)
	var names []string
	for _, n := range all {
		names = append(names, n.Name)
	}
	return strings.Join(names, " ")
}
