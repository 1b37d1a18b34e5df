package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// A Writer writes one bundle and locks it against other writers. Its methods are safe for
// concurrent use.
type Writer struct {
	dir     string
	lock    *host.Lock
	trials  *lines
	seconds *lines
}

// Create creates a bundle in a directory that does not exist or is empty.
func Create(ctx context.Context, dir string, h Manifest) (*Writer, error) {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return nil, problem.New(problem.Failed, "the bundle's directory is not empty").At(dir).
			Try("name another directory, or remove this one")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.Failed, "the bundle's directory cannot be read").At(dir).Because(err)
	}
	if err == nil {
		if err := checkOwner(dir); err != nil {
			return nil, err
		}
	}
	h.Format = Format
	w, err := open(ctx, dir, h.Who)
	if err != nil {
		return nil, err
	}
	if err := w.WriteManifest(h); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Open opens a bundle to resume its run, and returns its contents. It removes a line that a killed
// run left incomplete.
func Open(ctx context.Context, dir, who string) (*Writer, *Contents, error) {
	if err := checkOwner(dir); err != nil {
		return nil, nil, err
	}
	w, err := open(ctx, dir, who)
	if err != nil {
		return nil, nil, err
	}
	c, err := Read(dir)
	if err == nil {
		err = c.Damaged.OrNil()
	}
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	return w, c, nil
}

// open takes the lock and opens the files to append to.
func open(ctx context.Context, dir, who string) (*Writer, error) {
	command := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	lock, err := host.TakeLock(ctx, filepath.Join(dir, lockFile), host.NewHolder(who, command))
	if err != nil {
		return nil, wrapPath(dir, err)
	}
	w := &Writer{dir: dir, lock: lock}
	w.trials, err = openLines(filepath.Join(dir, TrialsFile))
	if err == nil {
		w.seconds, err = openLines(filepath.Join(dir, SecondsFile))
	}
	if err != nil {
		err = wrapPath(dir, err)
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Dir returns the bundle's directory.
func (w *Writer) Dir() string { return w.dir }

// SiteDir returns the directory in the bundle for the site of the run.
func (w *Writer) SiteDir() string { return filepath.Join(w.dir, SiteDir) }

// WriteManifest writes bundle.json atomically, after all earlier trials are on the disk. It waits for the
// disk, so it is called between rounds.
func (w *Writer) WriteManifest(h Manifest) error {
	if err := w.trials.sync(); err != nil {
		return wrapPath(w.trials.path, err)
	}
	path := filepath.Join(w.dir, ManifestFile)
	return wrapPath(path, host.WriteJSON(path, 0o644, h))
}

// AppendTrial appends a trial. It does not wait for the disk, because the next trial would measure that.
// JSON cannot hold NaN and infinity, so such a sample fails its trial.
func (w *Writer) AppendTrial(t Trial) error {
	var kept []test.Sample
	for _, s := range t.Samples {
		if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			kept = append(kept, s)
		} else if t.Error == "" {
			t.Error = fmt.Sprintf("%s is not a number: %v", s.Figure, s.Value)
		}
	}
	t.Samples = kept
	return wrapPath(w.trials.path, w.trials.add(t))
}

// AppendSecond appends what was observed in a second as one line of JSON.
func (w *Writer) AppendSecond(x any) error { return wrapPath(w.seconds.path, w.seconds.add(x)) }

// WriteFacts writes facts.json.
func (w *Writer) WriteFacts(x any) error {
	path := filepath.Join(w.dir, FactsFile)
	return wrapPath(path, host.WriteJSON(path, 0o644, x))
}

// WriteExperiment writes the experiment's file as given.
func (w *Writer) WriteExperiment(text []byte) error { return w.writeFile(ExperimentFile, text) }

// WriteOutput writes a tool's raw output below output/.
func (w *Writer) WriteOutput(path string, content []byte) error {
	if !filepath.IsLocal(path) {
		return problem.New(problem.Failed, "%q is outside of the bundle", path).At(w.dir)
	}
	return w.writeFile(filepath.Join(OutputDir, path), content)
}

func (w *Writer) writeFile(name string, content []byte) error {
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return wrapPath(path, err)
	}
	return wrapPath(path, host.WriteFile(host.File{Path: path, Content: content, Mode: 0o644}))
}

// Close closes the files and releases the lock.
func (w *Writer) Close() error {
	defer w.lock.Release()
	err := w.trials.close()
	return errors.Join(err, w.seconds.close())
}

// wrapPath adds the path to an error, or returns nil. It does not change a Problem, such as that
// about the lock's holder.
func wrapPath(path string, err error) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	var unfit *json.UnsupportedValueError
	if errors.As(err, &unfit) {
		return problem.New(problem.Failed, "JSON cannot hold %s", unfit.Str).At(path)
	}
	return problem.New(problem.Failed, "the bundle cannot be written").At(path).Because(err).
		Try("check the free space: df %s", filepath.Dir(path))
}
