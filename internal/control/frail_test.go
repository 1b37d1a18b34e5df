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
	"orrery/internal/observe"
	"orrery/internal/observe/routine"
	"orrery/internal/plan"
	"orrery/internal/secret"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/snapshot"
	ways "orrery/internal/transport/transfer"
	"orrery/internal/volume"
)

// errMishap is the error of a failing call of a frail host.
const errMishap = mishapError("a mishap, as ordered")

type mishapError string

func (e mishapError) Error() string { return string(e) }

// mishaps counts the calls of frail hosts by name ("sv1 Observe"), and makes one of them fail.
type mishaps struct {
	mu     sync.Mutex
	calls  map[string]int
	name   string
	nth    int // counted from 1
	struck bool
}

// order makes the nth call of a name fail, and resets all counts. With an empty name, calls are
// only counted.
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

// The parts of a frail host.
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
func (f frailRuns) Lock(ctx context.Context, by host.Holder) (func(), error) {
	return tried(f.frail, "Runs.Lock", func() (func(), error) { return f.RunHost.Lock(ctx, by) })
}

func (f frailRuns) Sweep(ctx context.Context) error {
	return f.try("Runs.Sweep", func() error { return f.RunHost.Sweep(ctx) })
}

func (f frailState) Observe(ctx context.Context, engines []string) (observe.Host, error) {
	return tried(f.frail, "State.Observe", func() (observe.Host, error) { return f.StateHost.Observe(ctx, engines) })
}

func (f frailState) PublicKey(ctx context.Context) (string, error) {
	return tried(f.frail, "State.PublicKey", func() (string, error) { return f.StateHost.PublicKey(ctx) })
}

func (f frailState) SetSiteID(ctx context.Context, origin string) error {
	return f.try("State.SetSiteID", func() error { return f.StateHost.SetSiteID(ctx, origin) })
}

func (f frailState) Cordoned(ctx context.Context) (*observe.Drain, error) {
	return tried(f.frail, "State.Cordoned", func() (*observe.Drain, error) { return f.StateHost.Cordoned(ctx) })
}

func (f frailState) SetCordoned(ctx context.Context, mark *observe.Drain) error {
	return f.try("State.SetCordoned", func() error { return f.StateHost.SetCordoned(ctx, mark) })
}

func (f frailState) Forget(ctx context.Context) ([]string, error) {
	return tried(f.frail, "State.Forget", func() ([]string, error) { return f.StateHost.Forget(ctx) })
}

func (f frailNodes) List(ctx context.Context) ([]observe.Node, error) {
	return tried(f.frail, "Nodes.List", func() ([]observe.Node, error) { return f.NodeHost.List(ctx) })
}

func (f frailNodes) WithOwner(ctx context.Context, look apply.InspectMode) (apply.OwnedNodes, error) {
	return tried(f.frail, "Nodes.WithOwner", func() (apply.OwnedNodes, error) { return f.NodeHost.WithOwner(ctx, look) })
}

func (f frailNodes) DetectDrift(ctx context.Context, nodes []observe.Node, wants []apply.DesiredNode) error {
	return f.try("Nodes.DetectDrift", func() error { return f.NodeHost.DetectDrift(ctx, nodes, wants) })
}

func (f frailLayers) Describe(ctx context.Context, layers []string) ([]image.Record, error) {
	return tried(f.frail, "Layers.Describe", func() ([]image.Record, error) { return f.LayerHost.Describe(ctx, layers) })
}

func (f frailRuns) DiscardUndo(ctx context.Context, done []*plan.Step) error {
	return f.try("Runs.DiscardUndo", func() error { return f.RunHost.DiscardUndo(ctx, done) })
}

func (f frailReleases) Read(ctx context.Context) (observe.Releases, error) {
	return tried(f.frail, "Releases.Read", func() (observe.Releases, error) { return f.ReleaseHost.Read(ctx) })
}

func (f frailReleases) Write(ctx context.Context, r observe.Releases) error {
	return f.try("Releases.Write", func() error { return f.ReleaseHost.Write(ctx, r) })
}

func (f frailReleases) Copy(ctx context.Context, r observe.Releases) error {
	return f.try("Releases.Copy", func() error { return f.ReleaseHost.Copy(ctx, r) })
}

func (f frailReleases) Editions(ctx context.Context, of []int) (map[int]string, error) {
	return tried(f.frail, "Releases.Editions", func() (map[int]string, error) { return f.ReleaseHost.Editions(ctx, of) })
}

func (f frailReleases) SendEdition(ctx context.Context, release int, rw io.ReadWriter) error {
	return f.try("Releases.SendEdition", func() error { return f.ReleaseHost.SendEdition(ctx, release, rw) })
}

func (f frailLayers) Receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	return f.try("Layers.Receive", func() error { return f.LayerHost.Receive(ctx, digest, rw) })
}

func (f frailReleases) KeepEdition(ctx context.Context, release int, digest string, rw io.ReadWriter) error {
	return f.try("Releases.KeepEdition", func() error { return f.ReleaseHost.KeepEdition(ctx, release, digest, rw) })
}

func (f frailState) SavePlan(ctx context.Context, p apply.UnattendedPlan) ([]string, error) {
	return tried(f.frail, "State.SavePlan", func() ([]string, error) { return f.StateHost.SavePlan(ctx, p) })
}

func (f frailState) Routine(ctx context.Context, name string) (routine.Record, error) {
	return tried(f.frail, "State.Routine", func() (routine.Record, error) { return f.StateHost.Routine(ctx, name) })
}

func (f frailState) SaveRoutine(ctx context.Context, name string, r routine.Record) error {
	return f.try("State.SaveRoutine", func() error { return f.StateHost.SaveRoutine(ctx, name, r) })
}

func (f frailTwins) List(ctx context.Context) ([]twin.Record, error) {
	return tried(f.frail, "Twins.List", func() ([]twin.Record, error) { return f.TwinHost.List(ctx) })
}

func (f frailTwins) Save(ctx context.Context, r twin.Record) error {
	return f.try("Twins.Save", func() error { return f.TwinHost.Save(ctx, r) })
}

func (f frailTwins) Fill(ctx context.Context, name string, of []apply.VolumeCopy) ([]string, error) {
	return tried(f.frail, "Twins.Fill", func() ([]string, error) { return f.TwinHost.Fill(ctx, name, of) })
}

func (f frailTwins) Forget(ctx context.Context) error {
	return f.try("Twins.Forget", func() error { return f.TwinHost.Forget(ctx) })
}

func (f frailRuns) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	err = f.try("Runs.Clock", func() (wrong error) { ahead, took, wrong = f.RunHost.Clock(ctx); return wrong })
	return ahead, took, err
}

func (f frailRuns) OpenJournal(ctx context.Context) (apply.Journal, error) {
	return tried(f.frail, "Runs.OpenJournal", func() (apply.Journal, error) { return f.RunHost.OpenJournal(ctx) })
}

func (f frailRuns) ReadJournal(ctx context.Context, runs int) (all []journal.Entry, damaged []int, err error) {
	err = f.try("Runs.ReadJournal", func() (wrong error) {
		all, damaged, wrong = f.RunHost.ReadJournal(ctx, runs)
		return wrong
	})
	return all, damaged, err
}

func (f frailNodes) Log(ctx context.Context, node string) (io.ReadCloser, error) {
	return tried(f.frail, "Nodes.Log", func() (io.ReadCloser, error) { return f.NodeHost.Log(ctx, node) })
}

func (f frailNodes) Runner(n *spec.Node) (host.Runner, error) {
	return tried(f.frail, "Nodes.Runner", func() (host.Runner, error) { return f.NodeHost.Runner(n) })
}

func (f frailNodes) Console(n *spec.Node) (host.Console, error) {
	return tried(f.frail, "Nodes.Console", func() (host.Console, error) { return f.NodeHost.Console(n) })
}

func (f frailNodes) Screen(n *spec.Node) (host.Screen, error) {
	return tried(f.frail, "Nodes.Screen", func() (host.Screen, error) { return f.NodeHost.Screen(n) })
}

func (f frailLayers) ContentInfo(ctx context.Context, layer string) (image.ContentInfo, error) {
	return tried(f.frail, "Layers.ContentInfo",
		func() (image.ContentInfo, error) { return f.LayerHost.ContentInfo(ctx, layer) })
}

func (f frailTransfers) Send(ctx context.Context, e apply.Transfer, at apply.ListenAddrs,
	meet func(ways.EndpointInfo) (ways.EndpointInfo, error), say func(detail string)) (string, error) {
	return tried(f.frail, "Transfers.Send", func() (string, error) { return f.TransferHost.Send(ctx, e, at, meet, say) })
}

func (f frailTransfers) Receive(ctx context.Context, e apply.Transfer, with apply.Coordinator,
	say func(detail string)) error {
	return f.try("Transfers.Receive", func() error { return f.TransferHost.Receive(ctx, e, with, say) })
}

func (f frailTransfers) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return tried(f.frail, "Transfers.Dial", func() (net.Conn, error) { return f.TransferHost.Dial(ctx, to) })
}

func (f frailSecrets) Read(ctx context.Context, name string) (secret.Stored, error) {
	return tried(f.frail, "Secrets.Read", func() (secret.Stored, error) { return f.SecretHost.Read(ctx, name) })
}

func (f frailSecrets) Store(ctx context.Context, name string, s secret.Stored) error {
	return f.try("Secrets.Store", func() error { return f.SecretHost.Store(ctx, name, s) })
}

func (f frailSecrets) Replace(ctx context.Context, name string, s secret.Stored) error {
	return f.try("Secrets.Replace", func() error { return f.SecretHost.Replace(ctx, name, s) })
}

func (f frailSecrets) Remove(ctx context.Context, name string) error {
	return f.try("Secrets.Remove", func() error { return f.SecretHost.Remove(ctx, name) })
}

func (f frailSnapshots) List(ctx context.Context) (kept []*snapshot.Snapshot, ready []string, err error) {
	err = f.try("Snapshots.List", func() (wrong error) { kept, ready, wrong = f.SnapshotHost.List(ctx); return wrong })
	return kept, ready, err
}

func (f frailSnapshots) Size(ctx context.Context, id string) (volume.Size, error) {
	return tried(f.frail, "Snapshots.Size", func() (volume.Size, error) { return f.SnapshotHost.Size(ctx, id) })
}

func (f frailSnapshots) Restoring(ctx context.Context) (id string, nodes []string, err error) {
	err = f.try("Snapshots.Restoring", func() (wrong error) {
		id, nodes, wrong = f.SnapshotHost.Restoring(ctx)
		return wrong
	})
	return id, nodes, err
}

func (f frailSnapshots) Capture(ctx context.Context, of apply.SnapshotRequest,
	with snapshot.Barrier) (*snapshot.Snapshot, error) {
	return tried(f.frail, "Snapshots.Capture", func() (*snapshot.Snapshot, error) {
		return f.SnapshotHost.Capture(ctx, of, with)
	})
}

func (f frailSnapshots) Keep(ctx context.Context, id string) error {
	return f.try("Snapshots.Keep", func() error { return f.SnapshotHost.Keep(ctx, id) })
}

func (f frailSnapshots) Remove(ctx context.Context, id string) error {
	return f.try("Snapshots.Remove", func() error { return f.SnapshotHost.Remove(ctx, id) })
}

func (f frailSnapshots) Restore(ctx context.Context, id string, nodes []string,
	then func(apply.RestoreFailures) error) error {
	return f.try("Snapshots.Restore", func() error { return f.SnapshotHost.Restore(ctx, id, nodes, then) })
}

func (f frailVolumes) Describe(ctx context.Context, of []apply.Directory) ([]apply.VolumeStatus, error) {
	return tried(f.frail, "Volumes.Describe", func() ([]apply.VolumeStatus, error) {
		return f.VolumeHost.Describe(ctx, of)
	})
}

func (f frailVolumes) Mirror(ctx context.Context, of []apply.Directory, with apply.MirrorRun,
	each func(volume.MirrorStatus)) error {
	return f.try("Volumes.Mirror", func() error { return f.VolumeHost.Mirror(ctx, of, with, each) })
}

func (f frailVolumes) Verify(ctx context.Context, of []apply.Directory) ([][]volume.Difference, error) {
	return tried(f.frail, "Volumes.Verify", func() ([][]volume.Difference, error) { return f.VolumeHost.Verify(ctx, of) })
}

func (f frailVolumes) Adoptions(ctx context.Context, of apply.AdoptRequest) ([]apply.Adoption, error) {
	return tried(f.frail, "Volumes.Adoptions", func() ([]apply.Adoption, error) { return f.VolumeHost.Adoptions(ctx, of) })
}

func (f frailVolumes) Adopt(ctx context.Context, of apply.AdoptRequest) ([]apply.AdoptResult, error) {
	return tried(f.frail, "Volumes.Adopt", func() ([]apply.AdoptResult, error) { return f.VolumeHost.Adopt(ctx, of) })
}

func (f frailVolumes) Receive(ctx context.Context, of apply.Directory, way io.ReadWriter) error {
	return f.try("Volumes.Receive", func() error { return f.VolumeHost.Receive(ctx, of, way) })
}

func (f frailLayers) List(ctx context.Context) ([]image.StoredLayer, error) {
	return tried(f.frail, "Layers.List", func() ([]image.StoredLayer, error) { return f.LayerHost.List(ctx) })
}

func (f frailLayers) Verify(ctx context.Context, digest string) error {
	return f.try("Layers.Verify", func() error { return f.LayerHost.Verify(ctx, digest) })
}

func (f frailLayers) RemoveUnused(ctx context.Context) ([]image.Info, error) {
	return tried(f.frail, "Layers.RemoveUnused", func() ([]image.Info, error) { return f.LayerHost.RemoveUnused(ctx) })
}

func (f frailBackups) Send(ctx context.Context, way io.ReadWriter) error {
	return f.try("Backups.Send", func() error { return f.BackupHost.Send(ctx, way) })
}

func (f frailBackups) SendMissing(ctx context.Context, way io.ReadWriter) error {
	return f.try("Backups.SendMissing", func() error { return f.BackupHost.SendMissing(ctx, way) })
}

func (f frailBackups) Receive(ctx context.Context, way io.ReadWriter) error {
	return f.try("Backups.Receive", func() error { return f.BackupHost.Receive(ctx, way) })
}

func (f frailBackups) Restoring(ctx context.Context) (*observe.RestoreProgress, error) {
	return tried(f.frail, "Backups.Restoring", func() (*observe.RestoreProgress, error) {
		return f.BackupHost.Restoring(ctx)
	})
}

func (f frailBackups) AdvanceRestore(ctx context.Context, id, to string) ([]string, error) {
	return tried(f.frail, "Backups.AdvanceRestore", func() ([]string, error) {
		return f.BackupHost.AdvanceRestore(ctx, id, to)
	})
}

func (f frailRuns) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	return f.try("Do "+s.Title()+" "+string(s.Kind), func() error { return f.RunHost.Do(ctx, s, say) })
}
