package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host/schedule"
	"orrery/internal/host/twins"
	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/tree"
)

// waiting records the jobs and timers of a host.
type waiting struct {
	calls     []string
	schedules []schedule.Timers
}

func (w *waiting) Later(_ context.Context, l schedule.Job) error {
	w.calls = append(w.calls, l.Name)
	return nil
}

func (w *waiting) Cancel(name string) error {
	w.calls = append(w.calls, "cancel "+name)
	return nil
}

func (w *waiting) Set(s schedule.Timers) ([]string, error) {
	w.schedules = append(w.schedules, s)
	return nil, nil
}

// noSecrets is the keyring of a site without secrets.
type noSecrets struct{ *secret.Keyring }

func (noSecrets) Text(context.Context, spec.SecretText) ([]byte, error) { return nil, fs.ErrNotExist }

// keeping returns a host with a node, and its recorded jobs.
func keeping(t *testing.T) (*removal, *Host, *waiting) {
	t.Helper()
	m := newRemoval(t)
	w, later := m.on[0], &waiting{}
	w.Waiter, w.Backends.Timers = later, later
	w.SiteState.Secrets = noSecrets{secret.NewKeyring(&site.Site{Name: "karoo"}, m.dirs[0])}
	return m, w, later
}

// inTheWay replaces a file by a directory that is not empty. Away restores the file.
func inTheWay(t *testing.T, path string) (away func()) {
	t.Helper()
	existed := tree.Exists(path)
	if existed {
		must(t, os.Rename(path, path+".aside"))
	}
	must(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o755))
	return func() {
		t.Helper()
		must(t, os.RemoveAll(path))
		if existed {
			must(t, os.Rename(path+".aside", path))
		}
	}
}

// twinOfKaroo returns the record of a twin that expires in an hour.
func twinOfKaroo() twin.Record {
	return twin.Record{Site: "karoo", Options: twin.Options{Name: "dev"}, Expires: time.Now().Add(time.Hour)}
}

// TestBlocked: if a host cannot write a file, it returns an error and does not start what depends
// on it. When the obstacle is gone, the same call succeeds.
func TestBlocked(t *testing.T) {
	m, w, later := keeping(t)
	dirs, ctx := m.dirs[0], t.Context()
	asTwin := ThisMachine("sv1", "karoo.dev", dirs, nil, nil)
	asTwin.Waiter = later
	must(t, os.MkdirAll(dirs.Site("karoo.dev"), 0o700))
	kept := func(name ...string) string { return filepath.Join(dirs.Site("karoo"), filepath.Join(name...)) }
	step := func(s plan.Step) func() error {
		return func() error { return w.Runs.Do(ctx, &s, func(string) {}) }
	}
	key := func() error { _, err := w.names.hostKey("db"); return err }
	told := &inventory.PeerInfo{Recipients: []inventory.Recipient{{Site: "karoo", ID: m.node.ID}}}
	names, forget := step(plan.Step{Kind: plan.WriteNames, Names: "1", Payload: plan.Payload{Tell: told}}),
		step(plan.Step{Kind: plan.ForgetNames})
	must(t, names())
	mirrored := apply.Directory{Node: "db", Mirror: "/backup", Every: time.Hour}
	saving := func(p apply.UnattendedPlan) func() error {
		return func() error { _, err := w.State.SavePlan(ctx, p); return err }
	}
	for what, c := range map[string]struct {
		path string
		do   func() error
	}{
		"the id of the site": {kept("origin.json"), func() error { return w.State.SetSiteID(ctx, "a1") }},
		"that the host is drained": {kept("drained.json"), func() error {
			return w.State.SetCordoned(ctx, &observe.Drain{})
		}},
		"that it is so no longer": {kept("drained.json"), func() error { return w.State.SetCordoned(ctx, nil) }},
		"what follows a reboot": {apply.UnattendedPath(dirs, "karoo", apply.TriggerBoot),
			saving(apply.UnattendedPlan{Trigger: apply.TriggerBoot, Steps: []json.RawMessage{[]byte("{}")}})},
		"that nothing does": {apply.UnattendedPath(dirs, "karoo", apply.TriggerBoot),
			saving(apply.UnattendedPlan{Trigger: apply.TriggerBoot})},
		"the way back from a trial": {apply.UnattendedPath(dirs, "karoo", apply.TriggerTrial),
			saving(apply.UnattendedPlan{Trigger: apply.TriggerTrial, Watch: true})},
		"what is live": {kept("releases.json"), func() error {
			return w.Releases.Write(t.Context(), observe.Releases{})
		}},
		"what is live elsewhere": {kept("releases.json"), func() error {
			return w.Releases.Copy(t.Context(), observe.Releases{})
		}},
		"what a switch has made live": {kept("releases.json"), step(plan.Step{Kind: plan.CommitSwitch,
			Releases: &observe.Releases{}})},
		"a secret": {kept("secrets", "token"), func() error {
			return w.Host.Secrets.Store(ctx, "token", secret.Stored{Value: "abc", Generation: 1})
		}},
		"the record of a twin": {twins.Path(dirs, "karoo.dev"), func() error {
			return asTwin.Twins.Save(ctx, twinOfKaroo())
		}},
		"the journal": {kept("journal.jsonl"), func() error {
			j, err := w.Runs.OpenJournal(t.Context())
			if err == nil {
				err = errors.Join(j.Add(journal.Entry{Kind: "begin"}), j.Close())
			}
			return err
		}},
		"which mirrors are kept": {apply.UnattendedPath(dirs, "karoo", apply.TriggerMirror), saving(apply.UnattendedPlan{
			Trigger: apply.TriggerMirror, Every: map[string]time.Duration{"data": time.Hour}, Of: []apply.Directory{mirrored},
		})},
		"that none is": {apply.UnattendedPath(dirs, "karoo", apply.TriggerMirror),
			saving(apply.UnattendedPlan{Trigger: apply.TriggerMirror})},
		"an SSH host key": {kept("keys", "db", "ssh_host_ed25519_key"), key},
		"its public half": {kept("keys", "db", "ssh_host_ed25519_key.pub"), key},
		"the key of a network": {kept("keys", ".wireguard"), func() error {
			_, err := w.names.privateKey()
			return err
		}},
		"what nodes were told":        {dirs.Names("karoo"), names},
		"what a node is told":         {filepath.Join(dirs.Etc("karoo", m.node.ID), "hosts"), names},
		"which keys nodes have":       {kept("keys", "known_hosts"), names},
		"what nodes were told before": {kept("undo", "names.json"), names},
		"that nodes are told no more": {dirs.Names("karoo"), forget},
		"how far a node has come": {kept("undo", "101", "progress.json"), func() error {
			return runOf(dirs,
				"karoo").note(101, func(p *progress) { p.Booting = !p.Booting })
		}},
		"the log of a node": {kept("logs", "db.log"), func() error {
			log, err := w.log("db")
			if err == nil {
				err = log.Close()
			}
			return err
		}},
		"room for the start of a node": {kept("undo", "101", "spare", "0"), step(plan.Step{Kind: plan.StopNode,
			Old: m.node, Restarts: true})},
	} {
		away := inTheWay(t, c.path)
		before := fmt.Sprint(later.calls, later.schedules)
		if err := c.do(); err == nil {
			t.Errorf("%s cannot be written, and that is no error", what)
		}
		if after := fmt.Sprint(later.calls, later.schedules); after != before {
			t.Errorf("%s cannot be written, and what follows is begun: %s", what, after)
		}
		away()
		if err := c.do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, names())
	must(t, names()) // keeps what the first call has written
	away := inTheWay(t, filepath.Join(dirs.Etc("karoo", m.node.ID), "hosts"))
	if err := w.names.restore(ctx); err == nil {
		t.Error("what nodes were told before cannot be put back, and that is no error")
	}
	away()
	must(t, w.names.restore(ctx))
}
