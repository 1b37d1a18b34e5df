package control_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/journal"
	ways "orrery/internal/lane"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// errMishap is why a call of a frail host fails.
const errMishap = mishapError("a mishap, as ordered")

type mishapError string

func (e mishapError) Error() string { return string(e) }

// Mishaps counts the calls of frail hosts by name ("sv1 Observe"), and lets one of them fail.
type mishaps struct {
	mu     sync.Mutex
	calls  map[string]int
	name   string
	nth    int // the first is 1
	struck bool
}

// order lets the nth call of a name fail, and forgets all calls before. An empty name only counts.
func (m *mishaps) order(name string, nth int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.name, m.nth, m.struck = map[string]int{}, name, nth, false
}

// called returns how often each call was made since the last order.
func (m *mishaps) called() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func (m *mishaps) happened() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.struck
}

func (m *mishaps) strike(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		return nil
	}
	m.calls[name]++
	if name == m.name && m.calls[name] == m.nth {
		m.struck = true
		return errMishap
	}
	return nil
}

// A frail host is a local one whose calls can fail before they have done anything.
type frail struct {
	*local.Worker
	*mishaps
	machine string
}

func (f frail) try(name string, do func() error) error {
	if err := f.strike(f.machine + " " + name); err != nil {
		return err
	}
	return do()
}

func tried[T any](f frail, name string, do func() (T, error)) (result T, err error) {
	err = f.try(name, func() error { result, err = do(); return err })
	return result, err
}
func (f frail) Hold(ctx context.Context, by host.Holder) (func(), error) {
	return tried(f, "Hold", func() (func(), error) { return f.Worker.Hold(ctx, by) })
}

func (f frail) Sweep(ctx context.Context) error {
	return f.try("Sweep", func() error { return f.Worker.Sweep(ctx) })
}

func (f frail) Observe(ctx context.Context, engines []string) (observe.Host, error) {
	return tried(f, "Observe", func() (observe.Host, error) { return f.Worker.Observe(ctx, engines) })
}

func (f frail) PublicKey(ctx context.Context) (string, error) {
	return tried(f, "PublicKey", func() (string, error) { return f.Worker.PublicKey(ctx) })
}

func (f frail) Mark(ctx context.Context, origin string) error {
	return f.try("Mark", func() error { return f.Worker.Mark(ctx, origin) })
}

func (f frail) Drained(ctx context.Context) (*observe.Drain, error) {
	return tried(f, "Drained", func() (*observe.Drain, error) { return f.Worker.Drained(ctx) })
}

func (f frail) SetDrained(ctx context.Context, mark *observe.Drain) error {
	return f.try("SetDrained", func() error { return f.Worker.SetDrained(ctx, mark) })
}

func (f frail) Forget(ctx context.Context) ([]string, error) {
	return tried(f, "Forget", func() ([]string, error) { return f.Worker.Forget(ctx) })
}

func (f frail) Nodes(ctx context.Context) ([]observe.Node, error) {
	return tried(f, "Nodes", func() ([]observe.Node, error) { return f.Worker.Nodes(ctx) })
}

func (f frail) Present(ctx context.Context, look apply.Look) (apply.Present, error) {
	return tried(f, "Present", func() (apply.Present, error) { return f.Worker.Present(ctx, look) })
}

func (f frail) Probe(ctx context.Context, nodes []observe.Node, wants []apply.Want) error {
	return f.try("Probe", func() error { return f.Worker.Probe(ctx, nodes, wants) })
}

func (f frail) Describe(ctx context.Context, layers []string) ([]image.Record, error) {
	return tried(f, "Describe", func() ([]image.Record, error) { return f.Worker.Describe(ctx, layers) })
}

func (f frail) Settle(ctx context.Context, done []*plan.Step) error {
	return f.try("Settle", func() error { return f.Worker.Settle(ctx, done) })
}

func (f frail) ReadReleases(ctx context.Context) (observe.Releases, error) {
	return tried(f, "ReadReleases", func() (observe.Releases, error) { return f.Worker.ReadReleases(ctx) })
}

func (f frail) WriteReleases(r observe.Releases) error {
	return f.try("WriteReleases", func() error { return f.Worker.WriteReleases(r) })
}

func (f frail) CopyReleases(r observe.Releases) error {
	return f.try("CopyReleases", func() error { return f.Worker.CopyReleases(r) })
}

func (f frail) Editions(ctx context.Context, of []int) (map[int]string, error) {
	return tried(f, "Editions", func() (map[int]string, error) { return f.Worker.Editions(ctx, of) })
}

func (f frail) SendEdition(ctx context.Context, release int, rw io.ReadWriter) error {
	return f.try("SendEdition", func() error { return f.Worker.SendEdition(ctx, release, rw) })
}

func (f frail) Receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	return f.try("Receive", func() error { return f.Worker.Receive(ctx, digest, rw) })
}

func (f frail) KeepEdition(ctx context.Context, release int, digest string, rw io.ReadWriter) error {
	return f.try("KeepEdition", func() error { return f.Worker.KeepEdition(ctx, release, digest, rw) })
}

func (f frail) KeepWayBack(ctx context.Context, w apply.WayBack) error {
	return f.try("KeepWayBack", func() error { return f.Worker.KeepWayBack(ctx, w) })
}

func (f frail) KeepBoot(ctx context.Context, b apply.Boot) error {
	return f.try("KeepBoot", func() error { return f.Worker.KeepBoot(ctx, b) })
}

func (f frail) Twins(ctx context.Context) ([]twin.Record, error) {
	return tried(f, "Twins", func() ([]twin.Record, error) { return f.Worker.Twins(ctx) })
}

func (f frail) KeepTwin(ctx context.Context, r twin.Record) error {
	return f.try("KeepTwin", func() error { return f.Worker.KeepTwin(ctx, r) })
}

func (f frail) FillTwin(ctx context.Context, name string, of []apply.Share) ([]string, error) {
	return tried(f, "FillTwin", func() ([]string, error) { return f.Worker.FillTwin(ctx, name, of) })
}

func (f frail) ForgetTwin(ctx context.Context) error {
	return f.try("ForgetTwin", func() error { return f.Worker.ForgetTwin(ctx) })
}

func (f frail) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	err = f.try("Clock", func() (wrong error) { ahead, took, wrong = f.Worker.Clock(ctx); return wrong })
	return ahead, took, err
}

func (f frail) Journal() (apply.Journal, error) {
	return tried(f, "Journal", func() (apply.Journal, error) { return f.Worker.Journal() })
}

func (f frail) Entries(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error) {
	err = f.try("Entries", func() (wrong error) { all, damaged, wrong = f.Worker.Entries(ctx, runs); return wrong })
	return all, damaged, err
}

func (f frail) Log(ctx context.Context, node string) (io.ReadCloser, error) {
	return tried(f, "Log", func() (io.ReadCloser, error) { return f.Worker.Log(ctx, node) })
}

func (f frail) Runner(n *spec.Node) (host.Runner, error) {
	return tried(f, "Runner", func() (host.Runner, error) { return f.Worker.Runner(n) })
}

func (f frail) Console(n *spec.Node) (host.Console, error) {
	return tried(f, "Console", func() (host.Console, error) { return f.Worker.Console(n) })
}

func (f frail) Screen(n *spec.Node) (host.Screen, error) {
	return tried(f, "Screen", func() (host.Screen, error) { return f.Worker.Screen(n) })
}

func (f frail) Word(ctx context.Context, layer string) (image.Word, error) {
	return tried(f, "Word", func() (image.Word, error) { return f.Worker.Word(ctx, layer) })
}

func (f frail) Give(ctx context.Context, e apply.Errand, at apply.Spot, meet func(ways.Card) (ways.Card, error), say func(detail string)) (string, error) {
	return tried(f, "Give", func() (string, error) { return f.Worker.Give(ctx, e, at, meet, say) })
}

func (f frail) Take(ctx context.Context, e apply.Errand, with apply.Meeting, say func(detail string)) error {
	return f.try("Take", func() error { return f.Worker.Take(ctx, e, with, say) })
}

func (f frail) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return tried(f, "Dial", func() (net.Conn, error) { return f.Worker.Dial(ctx, to) })
}

func (f frail) Secret(ctx context.Context, name string) (string, error) {
	return tried(f, "Secret", func() (string, error) { return f.Worker.Secret(ctx, name) })
}

func (f frail) KeepSecret(ctx context.Context, name, value string) error {
	return f.try("KeepSecret", func() error { return f.Worker.KeepSecret(ctx, name, value) })
}

func (f frail) Snapshots(ctx context.Context) (kept []*snapshot.Snapshot, ready []string, err error) {
	err = f.try("Snapshots", func() (wrong error) { kept, ready, wrong = f.Worker.Snapshots(ctx); return wrong })
	return kept, ready, err
}

func (f frail) SnapshotSize(ctx context.Context, id string) (volume.Size, error) {
	return tried(f, "SnapshotSize", func() (volume.Size, error) { return f.Worker.SnapshotSize(ctx, id) })
}

func (f frail) Restoring(ctx context.Context) (id string, nodes []string, err error) {
	err = f.try("Restoring", func() (wrong error) { id, nodes, wrong = f.Worker.Restoring(ctx); return wrong })
	return id, nodes, err
}

func (f frail) Capture(ctx context.Context, of apply.Capture, with snapshot.Pace) (*snapshot.Snapshot, error) {
	return tried(f, "Capture", func() (*snapshot.Snapshot, error) { return f.Worker.Capture(ctx, of, with) })
}

func (f frail) KeepSnapshot(ctx context.Context, id string) error {
	return f.try("KeepSnapshot", func() error { return f.Worker.KeepSnapshot(ctx, id) })
}

func (f frail) RemoveSnapshot(ctx context.Context, id string) error {
	return f.try("RemoveSnapshot", func() error { return f.Worker.RemoveSnapshot(ctx, id) })
}

func (f frail) PutBack(ctx context.Context, id string, nodes []string, then func(apply.Back) error) error {
	return f.try("PutBack", func() error { return f.Worker.PutBack(ctx, id, nodes, then) })
}

func (f frail) Volumes(ctx context.Context, of []apply.Directory) ([]apply.Contents, error) {
	return tried(f, "Volumes", func() ([]apply.Contents, error) { return f.Worker.Volumes(ctx, of) })
}

func (f frail) MirrorVolumes(ctx context.Context, of []apply.Directory, with apply.MirrorRun, each func(volume.Mirrored)) error {
	return f.try("MirrorVolumes", func() error { return f.Worker.MirrorVolumes(ctx, of, with, each) })
}

func (f frail) KeepMirrors(ctx context.Context, m apply.Mirrors) ([]string, error) {
	return tried(f, "KeepMirrors", func() ([]string, error) { return f.Worker.KeepMirrors(ctx, m) })
}

func (f frail) VerifyVolumes(ctx context.Context, of []apply.Directory) ([][]volume.Deviation, error) {
	return tried(f, "VerifyVolumes", func() ([][]volume.Deviation, error) { return f.Worker.VerifyVolumes(ctx, of) })
}

func (f frail) Adoptions(ctx context.Context, of apply.Heritage) ([]apply.Adoption, error) {
	return tried(f, "Adoptions", func() ([]apply.Adoption, error) { return f.Worker.Adoptions(ctx, of) })
}

func (f frail) AdoptVolumes(ctx context.Context, of apply.Heritage) ([]apply.Adopted, error) {
	return tried(f, "AdoptVolumes", func() ([]apply.Adopted, error) { return f.Worker.AdoptVolumes(ctx, of) })
}

func (f frail) LayVolume(ctx context.Context, of apply.Directory, way io.ReadWriter) error {
	return f.try("LayVolume", func() error { return f.Worker.LayVolume(ctx, of, way) })
}

func (f frail) Layers(ctx context.Context) ([]image.Kept, error) {
	return tried(f, "Layers", func() ([]image.Kept, error) { return f.Worker.Layers(ctx) })
}

func (f frail) VerifyLayer(ctx context.Context, digest string) error {
	return f.try("VerifyLayer", func() error { return f.Worker.VerifyLayer(ctx, digest) })
}

func (f frail) RemoveLayers(ctx context.Context) ([]image.Info, error) {
	return tried(f, "RemoveLayers", func() ([]image.Info, error) { return f.Worker.RemoveLayers(ctx) })
}

func (f frail) GiveBackup(ctx context.Context, way io.ReadWriter) error {
	return f.try("GiveBackup", func() error { return f.Worker.GiveBackup(ctx, way) })
}

func (f frail) FindBackup(ctx context.Context, way io.ReadWriter) error {
	return f.try("FindBackup", func() error { return f.Worker.FindBackup(ctx, way) })
}

func (f frail) LayBackup(ctx context.Context, way io.ReadWriter) error {
	return f.try("LayBackup", func() error { return f.Worker.LayBackup(ctx, way) })
}

func (f frail) RestorePart(ctx context.Context) (*observe.Restoring, error) {
	return tried(f, "RestorePart", func() (*observe.Restoring, error) { return f.Worker.RestorePart(ctx) })
}

func (f frail) AdvanceRestore(ctx context.Context, id, to string) ([]string, error) {
	return tried(f, "AdvanceRestore", func() ([]string, error) { return f.Worker.AdvanceRestore(ctx, id, to) })
}

func (f frail) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	return f.try("Do "+s.Title()+" "+string(s.Kind), func() error { return f.Worker.Do(ctx, s, say) })
}
