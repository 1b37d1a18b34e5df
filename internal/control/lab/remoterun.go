package lab

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"orrery/internal/apply/remote"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/host"
	"orrery/internal/host/staging"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// RunOn runs an experiment on the host of the site called name. If name is "", it runs on this
// machine, if this is a host of the site or there is no site.
func RunOn(ctx context.Context, c *control.Session, w Watcher, name string, o Options) (*StoredReport, error) {
	s, err := c.Load()
	if name == "" {
		if err == nil && !hosts.IncludesLocal(s) {
			return nil, problem.New(problem.Usage, "no host of site %s is this machine", s.Name).
				Try("use orrery lab run --host with one of %s", humanize.List(hosts.Names(s), 12))
		}
		return Run(ctx, c, w, o) // needs no site
	}
	if err != nil {
		return nil, err
	}
	h, ok := s.Host(name)
	switch {
	case !ok:
		return nil, hosts.UnknownHostError(s, name)
	case h.Local():
		return Run(ctx, c, w, o)
	}
	f := &remoteRun{c, w, o, *h, ""}
	return f.run(ctx)
}

// Read reads an experiment that will run on the host called name. The processors of this machine
// are checked only if it will run here.
func Read(path, name string) (*experiment.Experiment, error) {
	processors := ""
	if name == "" {
		processors = host.OnlineCPUs()
	}
	return experiment.Read(path, processors)
}

// A remoteRun is a run on another host. Its bundle is copied to this machine.
type remoteRun struct {
	Session *control.Session
	watcher Watcher
	Options
	host site.Host
	work string // directory of the bundle until it has been checked
}

func (f *remoteRun) run(ctx context.Context) (made *StoredReport, err error) {
	where := Bundles(f.Session)
	if f.To != "" {
		where = filepath.Dir(filepath.Clean(f.To))
		if err := f.checkVacant(f.To); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(where, 0o711); err != nil {
		return nil, problem.New(problem.Failed, "the directory for the bundle cannot be created").At(where).Because(err).
			Try("name another one with --to")
	}
	work, err := staging.Create(where)
	if err != nil {
		return nil, problem.New(problem.Failed, "the bundle cannot be written").At(where).Because(err).
			Try("name another directory with --to")
	}
	defer work.Remove()
	f.work = work.Path
	link, err := f.Session.Connector(&site.Site{Hosts: []site.Host{f.host}}).Link(ctx, f.host)
	if err != nil {
		return nil, err
	}
	x := remote.Experiment{Name: f.Experiment.Name, Text: f.Experiment.Text, Only: f.Experiment.Part, Rounds: f.Keep,
		Until: f.Until, Budget: f.Budget, Fresh: f.Fresh, By: control.UserName(), Arch: runtime.GOARCH}
	if name, err := os.Hostname(); err == nil {
		x.By += " at " + name
	}
	if x.Programs, err = programs(f.Experiment); err != nil {
		return nil, err
	}
	came := filepath.Join(f.work, "came")
	done, sent := f.measure(ctx, link, x, came)
	switch {
	case sent != nil && errors.Is(done, errNotBundle):
		return nil, f.refuse(sent)
	case sent != nil && done != nil: // nothing was received, because the run ended before
		return nil, done
	case sent != nil:
		return nil, f.refuse(sent)
	}
	dir, err := f.importBundle(ctx, came)
	if err != nil {
		return nil, errors.Join(done, err)
	}
	made, err = WriteReport(dir)
	if err == nil && done == nil {
		done = checkFigures(made.Report)
	}
	return made, errors.Join(done, err)
}

// errNotBundle is the error for data that is not a bundle.
var errNotBundle = errors.New("it is not a bundle")

// measure makes the host run the experiment, and stores the received data. It returns how the run
// ended, and whether a bundle was received.
func (f *remoteRun) measure(ctx context.Context, link *remote.Link, x remote.Experiment, to string) (done, sent error) {
	out, in := io.Pipe()
	laid := make(chan error, 1)
	go func() {
		err := bundle.Unpack(out, to)
		if n, _ := io.Copy(io.Discard, io.LimitReader(out, 1)); err == nil && n > 0 {
			err = errors.New("extra data after the bundle")
		}
		_ = out.CloseWithError(errNotBundle)
		laid <- err
	}()
	heard := newEventReceiver(f.watcher, f.host.Name, f.Experiment, func(text string) {
		f.Session.Watcher.Event(control.Event{Kind: control.Progress, Text: f.host.Name + ": " + text})
	})
	done = link.Measure(ctx, x, heard.handleMessage, in)
	f.watcher.Close()
	_ = in.Close()
	return done, <-laid
}

// importBundle stores the received bundle on this machine and returns its directory. The bundle is checked
// as untrusted. Its description is replaced by this machine's own.
func (f *remoteRun) importBundle(ctx context.Context, came string) (string, error) {
	w, c, err := bundle.Open(ctx, came, control.UserName())
	if err != nil {
		return "", f.refuse(err)
	}
	h := c.Manifest
	if h.Digest != bundle.Digest(f.Experiment.Text) || !slices.Equal(h.Part, f.Experiment.Part) {
		err = f.refuse(errors.New("it belongs to another experiment"))
		return "", errors.Join(err, w.Close())
	}
	dir := f.To
	if dir == "" {
		dir = filepath.Join(Bundles(f.Session), f.Experiment.Name+"-"+h.Began.UTC().Format("20060102-150405")+"-"+f.host.Name)
	}
	h.ID, h.Experiment, h.Title, h.Source = filepath.Base(dir), f.Experiment.Name, f.Experiment.Title, f.Experiment.Source
	h.From, h.Who, h.Host = f.host.Name, control.UserName(), f.host.Name+" ("+problem.Truncate(h.Host, 64)+")"
	if h.State != bundle.Done {
		h.State = bundle.Interrupted
	}
	err = w.WriteExperiment(f.Experiment.Text)
	if err == nil {
		err = w.WriteManifest(h)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	if err := f.checkVacant(dir); err != nil {
		return "", err
	}
	return dir, f.moveBundle(came, dir)
}

// checkVacant returns an error if a directory is not empty. It accepts an earlier, unfinished part of
// this experiment from the same host.
func (f *remoteRun) checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err == nil {
		old, bad := bundle.Read(dir)
		if bad == nil && old.Manifest.From == f.host.Name && old.Manifest.State != bundle.Done &&
			old.Manifest.Digest == bundle.Digest(f.Experiment.Text) &&
			slices.Equal(old.Manifest.Part, f.Experiment.Part) {
			return nil
		}
	}
	return problem.New(problem.Failed, "the directory for the bundle is not empty").At(dir).Because(err).
		Try("name another one with --to, or remove it")
}

// moveBundle moves the bundle to its directory, in place of its earlier part.
func (f *remoteRun) moveBundle(came, dir string) error {
	err := os.Remove(dir) // if it is empty
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(dir, filepath.Join(f.work, "former"))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(came, dir)
	}
	if err != nil {
		return problem.New(problem.Failed, "the bundle cannot be moved to its directory").At(dir).Because(err).
			Try("name another directory with --to")
	}
	return nil
}

// refuse returns the error that the data sent by the host was not accepted.
func (f *remoteRun) refuse(why error) error {
	return problem.New(problem.Failed, "the data that it sent is not the bundle of a run").At("host " + f.host.Name).
		Because(why).Try("run it again; on that host, orrery lab ls lists its bundles")
}
