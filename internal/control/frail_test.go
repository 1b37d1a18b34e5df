package control_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"orrery/internal/apply"
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

// A frail host is one whose calls can fail before they have done anything.
type frail struct {
	*mishaps
	machine string
}

// The subjects of a frail host.
type (
	frailRuns struct {
		apply.RunHost
		frail
	}
	frailState struct {
		apply.StateHost
		frail
	}
	frailNodes struct {
		apply.NodeHost
		frail
	}
	frailReleases struct {
		apply.ReleaseHost
		frail
	}
	frailLayers struct {
		apply.LayerHost
		frail
	}
	frailVolumes struct {
		apply.VolumeHost
		frail
	}
	frailSnapshots struct {
		apply.SnapshotHost
		frail
	}
	frailBackups struct {
		apply.BackupHost
		frail
	}
	frailTwins struct {
		apply.TwinHost
		frail
	}
	frailSecrets struct {
		apply.SecretHost
		frail
	}
	frailTransfers struct {
		apply.TransferHost
		frail
	}
)

// host returns a host as a frail one.
func (f frail) host(h apply.Host) apply.Host {
	return apply.Host{
		Runs:      frailRuns{h.Runs, f},
		State:     frailState{h.State, f},
		Nodes:     frailNodes{h.Nodes, f},
		Releases:  frailReleases{h.Releases, f},
		Layers:    frailLayers{h.Layers, f},
		Volumes:   frailVolumes{h.Volumes, f},
		Snapshots: frailSnapshots{h.Snapshots, f},
		Backups:   frailBackups{h.Backups, f},
		Twins:     frailTwins{h.Twins, f},
		Secrets:   frailSecrets{h.Secrets, f},
		Transfers: frailTransfers{h.Transfers, f},
		Near:      h.Near,
	}
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
func (f frailRuns) Hold(ctx context.Context, by host.Holder) (func(), error) {
	return tried(f.frail, "Hold", func() (func(), error) { return f.RunHost.Hold(ctx, by) })
}

func (f frailRuns) Sweep(ctx context.Context) error {
	return f.try("Sweep", func() error { return f.RunHost.Sweep(ctx) })
}

func (f frailState) Observe(ctx context.Context, engines []string) (observe.Host, error) {
	return tried(f.frail, "Observe", func() (observe.Host, error) { return f.StateHost.Observe(ctx, engines) })
}

func (f frailState) PublicKey(ctx context.Context) (string, error) {
	return tried(f.frail, "PublicKey", func() (string, error) { return f.StateHost.PublicKey(ctx) })
}

func (f frailState) Mark(ctx context.Context, origin string) error {
	return f.try("Mark", func() error { return f.StateHost.Mark(ctx, origin) })
}

func (f frailState) Drained(ctx context.Context) (*observe.Drain, error) {
	return tried(f.frail, "Drained", func() (*observe.Drain, error) { return f.StateHost.Drained(ctx) })
}

func (f frailState) SetDrained(ctx context.Context, mark *observe.Drain) error {
	return f.try("SetDrained", func() error { return f.StateHost.SetDrained(ctx, mark) })
}

func (f frailState) Forget(ctx context.Context) ([]string, error) {
	return tried(f.frail, "Forget", func() ([]string, error) { return f.StateHost.Forget(ctx) })
}

func (f frailNodes) Nodes(ctx context.Context) ([]observe.Node, error) {
	return tried(f.frail, "Nodes", func() ([]observe.Node, error) { return f.NodeHost.Nodes(ctx) })
}

func (f frailNodes) Present(ctx context.Context, look apply.Look) (apply.Present, error) {
	return tried(f.frail, "Present", func() (apply.Present, error) { return f.NodeHost.Present(ctx, look) })
}

func (f frailNodes) Probe(ctx context.Context, nodes []observe.Node, wants []apply.Want) error {
	return f.try("Probe", func() error { return f.NodeHost.Probe(ctx, nodes, wants) })
}

func (f frailLayers) Describe(ctx context.Context, layers []string) ([]image.Record, error) {
	return tried(f.frail, "Describe", func() ([]image.Record, error) { return f.LayerHost.Describe(ctx, layers) })
}

func (f frailRuns) Settle(ctx context.Context, done []*plan.Step) error {
	return f.try("Settle", func() error { return f.RunHost.Settle(ctx, done) })
}

func (f frailReleases) ReadReleases(ctx context.Context) (observe.Releases, error) {
	return tried(f.frail, "ReadReleases", func() (observe.Releases, error) { return f.ReleaseHost.ReadReleases(ctx) })
}

func (f frailReleases) WriteReleases(r observe.Releases) error {
	return f.try("WriteReleases", func() error { return f.ReleaseHost.WriteReleases(r) })
}

func (f frailReleases) CopyReleases(r observe.Releases) error {
	return f.try("CopyReleases", func() error { return f.ReleaseHost.CopyReleases(r) })
}

func (f frailReleases) Editions(ctx context.Context, of []int) (map[int]string, error) {
	return tried(f.frail, "Editions", func() (map[int]string, error) { return f.ReleaseHost.Editions(ctx, of) })
}

func (f frailReleases) SendEdition(ctx context.Context, release int, rw io.ReadWriter) error {
	return f.try("SendEdition", func() error { return f.ReleaseHost.SendEdition(ctx, release, rw) })
}

func (f frailLayers) Receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	return f.try("Receive", func() error { return f.LayerHost.Receive(ctx, digest, rw) })
}

func (f frailReleases) KeepEdition(ctx context.Context, release int, digest string, rw io.ReadWriter) error {
	return f.try("KeepEdition", func() error { return f.ReleaseHost.KeepEdition(ctx, release, digest, rw) })
}

func (f frailState) KeepWayBack(ctx context.Context, w apply.WayBack) error {
	return f.try("KeepWayBack", func() error { return f.StateHost.KeepWayBack(ctx, w) })
}

func (f frailState) KeepBoot(ctx context.Context, b apply.Boot) error {
	return f.try("KeepBoot", func() error { return f.StateHost.KeepBoot(ctx, b) })
}

func (f frailTwins) Twins(ctx context.Context) ([]twin.Record, error) {
	return tried(f.frail, "Twins", func() ([]twin.Record, error) { return f.TwinHost.Twins(ctx) })
}

func (f frailTwins) KeepTwin(ctx context.Context, r twin.Record) error {
	return f.try("KeepTwin", func() error { return f.TwinHost.KeepTwin(ctx, r) })
}

func (f frailTwins) FillTwin(ctx context.Context, name string, of []apply.Share) ([]string, error) {
	return tried(f.frail, "FillTwin", func() ([]string, error) { return f.TwinHost.FillTwin(ctx, name, of) })
}

func (f frailTwins) ForgetTwin(ctx context.Context) error {
	return f.try("ForgetTwin", func() error { return f.TwinHost.ForgetTwin(ctx) })
}

func (f frailRuns) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	err = f.try("Clock", func() (wrong error) { ahead, took, wrong = f.RunHost.Clock(ctx); return wrong })
	return ahead, took, err
}

func (f frailRuns) Journal() (apply.Journal, error) {
	return tried(f.frail, "Journal", func() (apply.Journal, error) { return f.RunHost.Journal() })
}

func (f frailRuns) Entries(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error) {
	err = f.try("Entries", func() (wrong error) { all, damaged, wrong = f.RunHost.Entries(ctx, runs); return wrong })
	return all, damaged, err
}

func (f frailNodes) Log(ctx context.Context, node string) (io.ReadCloser, error) {
	return tried(f.frail, "Log", func() (io.ReadCloser, error) { return f.NodeHost.Log(ctx, node) })
}

func (f frailNodes) Runner(n *spec.Node) (host.Runner, error) {
	return tried(f.frail, "Runner", func() (host.Runner, error) { return f.NodeHost.Runner(n) })
}

func (f frailNodes) Console(n *spec.Node) (host.Console, error) {
	return tried(f.frail, "Console", func() (host.Console, error) { return f.NodeHost.Console(n) })
}

func (f frailNodes) Screen(n *spec.Node) (host.Screen, error) {
	return tried(f.frail, "Screen", func() (host.Screen, error) { return f.NodeHost.Screen(n) })
}

func (f frailLayers) Word(ctx context.Context, layer string) (image.Word, error) {
	return tried(f.frail, "Word", func() (image.Word, error) { return f.LayerHost.Word(ctx, layer) })
}

func (f frailTransfers) Give(ctx context.Context, e apply.Errand, at apply.Spot, meet func(ways.Card) (ways.Card, error), say func(detail string)) (string, error) {
	return tried(f.frail, "Give", func() (string, error) { return f.TransferHost.Give(ctx, e, at, meet, say) })
}

func (f frailTransfers) Take(ctx context.Context, e apply.Errand, with apply.Meeting, say func(detail string)) error {
	return f.try("Take", func() error { return f.TransferHost.Take(ctx, e, with, say) })
}

func (f frailTransfers) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return tried(f.frail, "Dial", func() (net.Conn, error) { return f.TransferHost.Dial(ctx, to) })
}

func (f frailSecrets) Secret(ctx context.Context, name string) (string, error) {
	return tried(f.frail, "Secret", func() (string, error) { return f.SecretHost.Secret(ctx, name) })
}

func (f frailSecrets) KeepSecret(ctx context.Context, name, value string) error {
	return f.try("KeepSecret", func() error { return f.SecretHost.KeepSecret(ctx, name, value) })
}

func (f frailSnapshots) Snapshots(ctx context.Context) (kept []*snapshot.Snapshot, ready []string, err error) {
	err = f.try("Snapshots", func() (wrong error) { kept, ready, wrong = f.SnapshotHost.Snapshots(ctx); return wrong })
	return kept, ready, err
}

func (f frailSnapshots) SnapshotSize(ctx context.Context, id string) (volume.Size, error) {
	return tried(f.frail, "SnapshotSize", func() (volume.Size, error) { return f.SnapshotHost.SnapshotSize(ctx, id) })
}

func (f frailSnapshots) Restoring(ctx context.Context) (id string, nodes []string, err error) {
	err = f.try("Restoring", func() (wrong error) { id, nodes, wrong = f.SnapshotHost.Restoring(ctx); return wrong })
	return id, nodes, err
}

func (f frailSnapshots) Capture(ctx context.Context, of apply.Capture, with snapshot.Pace) (*snapshot.Snapshot, error) {
	return tried(f.frail, "Capture", func() (*snapshot.Snapshot, error) { return f.SnapshotHost.Capture(ctx, of, with) })
}

func (f frailSnapshots) KeepSnapshot(ctx context.Context, id string) error {
	return f.try("KeepSnapshot", func() error { return f.SnapshotHost.KeepSnapshot(ctx, id) })
}

func (f frailSnapshots) RemoveSnapshot(ctx context.Context, id string) error {
	return f.try("RemoveSnapshot", func() error { return f.SnapshotHost.RemoveSnapshot(ctx, id) })
}

func (f frailSnapshots) PutBack(ctx context.Context, id string, nodes []string, then func(apply.Back) error) error {
	return f.try("PutBack", func() error { return f.SnapshotHost.PutBack(ctx, id, nodes, then) })
}

func (f frailVolumes) Volumes(ctx context.Context, of []apply.Directory) ([]apply.Contents, error) {
	return tried(f.frail, "Volumes", func() ([]apply.Contents, error) { return f.VolumeHost.Volumes(ctx, of) })
}

func (f frailVolumes) MirrorVolumes(ctx context.Context, of []apply.Directory, with apply.MirrorRun, each func(volume.Mirrored)) error {
	return f.try("MirrorVolumes", func() error { return f.VolumeHost.MirrorVolumes(ctx, of, with, each) })
}

func (f frailVolumes) KeepMirrors(ctx context.Context, m apply.Mirrors) ([]string, error) {
	return tried(f.frail, "KeepMirrors", func() ([]string, error) { return f.VolumeHost.KeepMirrors(ctx, m) })
}

func (f frailVolumes) VerifyVolumes(ctx context.Context, of []apply.Directory) ([][]volume.Deviation, error) {
	return tried(f.frail, "VerifyVolumes", func() ([][]volume.Deviation, error) { return f.VolumeHost.VerifyVolumes(ctx, of) })
}

func (f frailVolumes) Adoptions(ctx context.Context, of apply.Heritage) ([]apply.Adoption, error) {
	return tried(f.frail, "Adoptions", func() ([]apply.Adoption, error) { return f.VolumeHost.Adoptions(ctx, of) })
}

func (f frailVolumes) AdoptVolumes(ctx context.Context, of apply.Heritage) ([]apply.Adopted, error) {
	return tried(f.frail, "AdoptVolumes", func() ([]apply.Adopted, error) { return f.VolumeHost.AdoptVolumes(ctx, of) })
}

func (f frailVolumes) LayVolume(ctx context.Context, of apply.Directory, way io.ReadWriter) error {
	return f.try("LayVolume", func() error { return f.VolumeHost.LayVolume(ctx, of, way) })
}

func (f frailLayers) Layers(ctx context.Context) ([]image.Kept, error) {
	return tried(f.frail, "Layers", func() ([]image.Kept, error) { return f.LayerHost.Layers(ctx) })
}

func (f frailLayers) VerifyLayer(ctx context.Context, digest string) error {
	return f.try("VerifyLayer", func() error { return f.LayerHost.VerifyLayer(ctx, digest) })
}

func (f frailLayers) RemoveLayers(ctx context.Context) ([]image.Info, error) {
	return tried(f.frail, "RemoveLayers", func() ([]image.Info, error) { return f.LayerHost.RemoveLayers(ctx) })
}

func (f frailBackups) GiveBackup(ctx context.Context, way io.ReadWriter) error {
	return f.try("GiveBackup", func() error { return f.BackupHost.GiveBackup(ctx, way) })
}

func (f frailBackups) FindBackup(ctx context.Context, way io.ReadWriter) error {
	return f.try("FindBackup", func() error { return f.BackupHost.FindBackup(ctx, way) })
}

func (f frailBackups) LayBackup(ctx context.Context, way io.ReadWriter) error {
	return f.try("LayBackup", func() error { return f.BackupHost.LayBackup(ctx, way) })
}

func (f frailBackups) RestorePart(ctx context.Context) (*observe.Restoring, error) {
	return tried(f.frail, "RestorePart", func() (*observe.Restoring, error) { return f.BackupHost.RestorePart(ctx) })
}

func (f frailBackups) AdvanceRestore(ctx context.Context, id, to string) ([]string, error) {
	return tried(f.frail, "AdvanceRestore", func() ([]string, error) { return f.BackupHost.AdvanceRestore(ctx, id, to) })
}

func (f frailRuns) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	return f.try("Do "+s.Title()+" "+string(s.Kind), func() error { return f.RunHost.Do(ctx, s, say) })
}
