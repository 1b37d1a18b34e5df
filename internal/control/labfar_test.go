package control_test

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/apply/remote"
	"orrery/internal/control"
	"orrery/internal/control/lab"
	"orrery/internal/control/sites"
	"orrery/internal/host"
	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// played simulates a host that is asked to measure.
type played func(ctx context.Context, x remote.Experiment, tell func(string), to io.Writer) error

func (p played) Measure(ctx context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
	return p(ctx, x, tell, to)
}

// simple returns an experiment that needs only the programs of its layer.
func simple(t *testing.T) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("default.toml", []byte("[setting.veth]\n[test.cpu]\nkind = \"cpu\"\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// onSv2 runs an experiment on the other host of a site.
func (d *desk) onSv2(ctx context.Context, o lab.Options) (*lab.StoredReport, error) {
	o.Experiment, o.Orrery = simple(d.T), "1"
	return lab.RunOn(ctx, d.Session, lookerOn{d.watch}, "sv2", o)
}

// leftOfLab returns what is in the directory of bundles.
func leftOfLab(c *control.Session) []string {
	all, _ := filepath.Glob(filepath.Join(lab.Bundles(c), "*"))
	for i := range all {
		all[i] = filepath.Base(all[i])
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == ".lock" })
}

// measured returns the bundle of a run of an experiment with the given state.
func measured(t *testing.T, x remote.Experiment, state bundle.State) string {
	t.Helper()
	dir, digest := filepath.Join(t.TempDir(), "b"), sha256.Sum256(x.Text)
	w, err := bundle.Create(t.Context(), dir, bundle.Manifest{
		Experiment: "x", Digest: hex.EncodeToString(digest[:]), Host: "box\x1b[2J", Who: "mallory", Orrery: "1",
		Began: time.Unix(1e9, 0), State: state, Rounds: 2,
		Settings: []bundle.Setting{{Name: experiment.Bare}},
		Tests:    []bundle.Test{{Name: "cpu", Kind: "cpu", Copies: 1, Figures: []test.Figure{{Name: "score"}}}},
	})
	if err == nil {
		err = w.AppendTrial(bundle.Trial{Round: 1, Setting: experiment.Bare, Test: "cpu",
			Samples: []test.Sample{{Figure: "score", Value: 3}}})
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "report.html"), []byte("<script>"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLabFar: the results of another host are stored with the bundles of this machine, with the
// name of the host. For an interrupted run, the existing part is stored, and more of it later.
func TestLabFar(t *testing.T) {
	d, other := farDisks(t)
	state := bundle.Interrupted
	other.bench = played(func(_ context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
		tell(`{"kind":"line","text":"node near1: start\u001b[2J"}`)
		tell(`{"kind":"failed","test":"no such","setting":"bare","text":"it is not shown"}`)
		if err := bundle.Pack(measured(t, x, state), to); err != nil || state == bundle.Done {
			return err
		}
		return problem.New(problem.Interrupted, "interrupted; measurements so far are kept")
	})
	made, err := d.onSv2(t.Context(), lab.Options{})
	d.wantExit(err, problem.Interrupted, "measurements so far are kept")
	const name = "default-20010909-014640-sv2"
	if got := leftOfLab(d.Session); !slices.Equal(got, []string{name}) || made == nil || filepath.Base(made.Dir) != name {
		t.Fatalf("there are %v, and %+v", got, made)
	}
	contents, err := bundle.Read(made.Dir)
	d.must(err)
	if h := contents.Manifest; h.From != "sv2" || h.State != bundle.Interrupted || h.Who == "mallory" ||
		h.Experiment != "default" || !strings.HasPrefix(h.Host, "sv2 (box") || strings.Contains(h.Host, "\x1b") ||
		len(contents.Trials) != 1 || string(contents.Experiment) != string(simple(t).Text) {
		t.Errorf("the bundle is %+v", h)
	}
	if text, err := os.ReadFile(filepath.Join(made.Dir, "report.html")); err != nil ||
		strings.HasPrefix(string(text), "<script>") {
		t.Errorf("the report is theirs: %.20s %v", text, err)
	}
	if _, err := lab.Check(made.Dir); err != nil {
		t.Errorf("checked: %v", err)
	}
	if said := d.watch.text(); !strings.Contains(said, "sv2: node near1: start") || strings.Contains(said, "\x1b") {
		t.Errorf("what is told is %q", said)
	}
	d.fault.Fail("Start", "", 1, nil)
	if made, _ := lab.Run(t.Context(), d.Session, lookerOn{d.watch},
		lab.Options{Experiment: simple(t), Orrery: "1"}); made != nil {
		t.Errorf("a run on this machine goes on with that of another: %+v", made)
	}
	state = bundle.Done
	// left by a run; the next one removes it
	killed, long := filepath.Join(lab.Bundles(d.Session), ".orrery-ABCDEFGHIJKL"), time.Now().Add(-time.Hour)
	d.must(os.MkdirAll(killed, 0o700))
	d.must(os.Chtimes(killed, long, long))
	made, err = d.onSv2(t.Context(), lab.Options{})
	d.must(err)
	if got := leftOfLab(d.Session); !slices.Equal(got, []string{name}) || filepath.Base(made.Dir) != name {
		t.Errorf("once it is done, there are %v", got)
	}
	_, err = d.onSv2(t.Context(), lab.Options{To: made.Dir})
	d.wantExit(err, problem.Failed, "not empty")
	to := filepath.Join(t.TempDir(), "mine")
	made, err = d.onSv2(t.Context(), lab.Options{To: to})
	d.must(err)
	if made.Dir != to {
		t.Errorf("it is in %s", made.Dir)
	}
	_, err = lab.RunOn(t.Context(), d.Session, lookerOn{d.watch}, "sv9", lab.Options{Experiment: simple(t)})
	d.wantExit(err, problem.Usage, `no host is called "sv9"`, "sv1", "sv2")
	d.write("site.toml", strings.Replace(twoHosts, `address = "local"`, `address = "10.8.1.1"`, 1))
	_, err = lab.RunOn(t.Context(), d.Session, lookerOn{d.watch}, "", lab.Options{Experiment: simple(t)})
	d.wantExit(err, problem.Usage, "no host of site", "--host", "sv1", "sv2")
}

// TestLabHostile: if a host sends anything but a bundle, nothing of it is stored anywhere.
func TestLabHostile(t *testing.T) {
	d, other := farDisks(t)
	file := func(to io.Writer, h tar.Header, text string) error {
		out := tar.NewWriter(to)
		h.Size = int64(len(text))
		if err := out.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
		return out.Close()
	}
	for what, sends := range map[string]func(x remote.Experiment, tell func(string), to io.Writer) error{
		"nothing": func(remote.Experiment, func(string), io.Writer) error { return nil },
		"no archive": func(_ remote.Experiment, _ func(string), to io.Writer) error {
			_, err := io.WriteString(to, strings.Repeat("x", 9000))
			return err
		},
		"a way out": func(_ remote.Experiment, _ func(string), to io.Writer) error {
			return file(to, tar.Header{Name: "../out"}, "x")
		},
		"a damaged head": func(_ remote.Experiment, _ func(string), to io.Writer) error {
			return file(to, tar.Header{Name: bundle.ManifestFile, Typeflag: tar.TypeReg}, "{")
		},
		"another experiment": func(x remote.Experiment, _ func(string), to io.Writer) error {
			return bundle.Pack(measured(t, remote.Experiment{Text: append(x.Text, '#')}, bundle.Done), to)
		},
		"more than that": func(x remote.Experiment, _ func(string), to io.Writer) error {
			if err := bundle.Pack(measured(t, x, bundle.Done), to); err != nil {
				return err
			}
			_, err := io.WriteString(to, strings.Repeat("x", 1<<20))
			return err
		},
		"chatter": func(_ remote.Experiment, tell func(string), _ io.Writer) error {
			for range 30_000 {
				tell(`{"kind":"line","text":"x"}`)
			}
			return nil
		},
		"gibberish": func(_ remote.Experiment, tell func(string), _ io.Writer) error { tell("{{"); return nil },
	} {
		t.Run(what, func(*testing.T) {
			other.bench = played(func(_ context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
				return sends(x, tell, to)
			})
			made, err := d.onSv2(t.Context(), lab.Options{})
			if err == nil || made != nil || !strings.Contains(err.Error(), "sv2") {
				t.Errorf("%s: %+v, %v", what, made, err)
			}
			if left := leftOfLab(d.Session); len(left) > 0 {
				t.Errorf("%s: left are %v", what, left)
			}
		})
	}
}

// TestLabThere: a run on another host holds the lock there. It leaves nothing if its nodes do not
// come up, or if the requesting host disconnects.
func TestLabThere(t *testing.T) {
	d, other := newDesk(t), newMachine(t)
	d.machine.others = map[string]*machine{"sv2": other}
	d.write("site.toml", twoHosts)
	session := *deskOn(t, other).Session
	session.Version = "1"
	other.bench = lab.Runner{Session: &session}
	left := func(step string) {
		t.Helper()
		rows, err := sites.All(t.Context(), &session)
		d.must(err)
		for _, r := range rows {
			if strings.HasPrefix(r.Key(), "orrery-lab") && r.Nodes > 0 {
				t.Errorf("%s: %s has %d nodes", step, r.Key(), r.Nodes)
			}
		}
		work, _ := filepath.Glob(filepath.Join(lab.Bundles(&session), ".work", "*"))
		if all := append(append(work, leftOfLab(&session)...),
			leftOfLab(d.Session)...); len(slices.DeleteFunc(all, func(n string) bool { return n == ".work" })) > 0 {
			t.Errorf("%s: left are %v", step, all)
		}
	}
	other.fault.Fail("Start", "", 1, nil)
	_, err := d.onSv2(t.Context(), lab.Options{})
	d.wantExit(err, problem.Left, "node ")
	left("a node that does not start")
	if said := d.watch.text(); !strings.Contains(said, "sv2: ") {
		t.Errorf("what is told is %q", said)
	}
	lock, err := host.TakeLock(t.Context(), filepath.Join(lab.Bundles(&session), ".lock"), control.Holder(&session))
	d.must(err)
	_, err = d.onSv2(t.Context(), lab.Options{})
	d.wantExit(err, problem.Locked)
	lock.Release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other.bench = played(func(far context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
		return lab.Runner{Session: &session}.Measure(far, x, func(text string) { cancel(); tell(text) }, to)
	})
	if _, err = d.onSv2(ctx, lab.Options{}); err == nil {
		t.Error("a run that was ended is done")
	}
	left("one that was ended")
	other.bench = played(func(far context.Context, x remote.Experiment, tell func(string), to io.Writer) error {
		lost := sync.OnceFunc(func() { d.machine.lose("sv2") })
		return lab.Runner{Session: &session}.Measure(far, x, func(text string) { lost(); tell(text) }, to)
	})
	if _, err = d.onSv2(t.Context(), lab.Options{}); !errors.Is(err, remote.ErrLost) {
		t.Errorf("without a connection: %v", err)
	}
	d.machine.served.Wait()
	left("one whose caller has gone")
}
