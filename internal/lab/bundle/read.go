package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// Contents are the contents of a bundle, except for the output of tools and the report.
type Contents struct {
	Dir        string
	Manifest   Manifest
	Experiment []byte // the experiment's file as given, or nil if missing
	Trials     []Trial
	Seconds    []json.RawMessage // the lines of probes.jsonl
	Facts      json.RawMessage   // nil if missing
	Damaged    problem.List      // unreadable lines and files, which the other fields do not contain

	root *tree.Root // while the bundle is read
}

// Read reads a bundle, even if it is still being written or is untrusted. It reads only regular
// files in the directory, up to a maximum size. It returns an error if the directory is not a
// bundle. Damage within the bundle is in Contents.Damaged.
func Read(dir string) (*Contents, error) {
	root, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	h, err := readManifest(root)
	if err != nil {
		return nil, err
	}
	if path, err := filepath.Abs(dir); err == nil {
		// it may have been copied or renamed, and two bundles with the same ID could not be
		// distinguished
		h.ID = sanitize.Line(filepath.Base(path))
	}
	c := &Contents{Dir: dir, Manifest: h, root: root}
	c.Experiment = c.readOptional(ExperimentFile, maxExperimentBytes)
	if facts := c.readOptional(FactsFile, maxFactsBytes); facts != nil {
		if json.Valid(facts) {
			c.Facts = facts
		} else {
			c.addDamage(FactsFile, errors.New("it is not JSON"))
		}
	}
	c.eachLine(TrialsFile, maxTrials, func(line []byte) error {
		var t Trial
		err := jsonlimit.Unmarshal(line, &t)
		if err == nil {
			err = t.validate()
		}
		if err == nil {
			c.Trials = append(c.Trials, t.sanitized())
		}
		return err
	})
	c.eachLine(SecondsFile, maxSeconds, func(line []byte) error {
		if !json.Valid(line) {
			return errors.New("it is not JSON")
		}
		c.Seconds = append(c.Seconds, line)
		return nil
	})
	return c, c.checkValues()
}

// openDir opens the directory of a bundle. The path is trusted, because the caller's user named it.
func openDir(dir string) (*tree.Root, error) {
	path, err := filepath.EvalSymlinks(dir)
	if err == nil {
		var root *tree.Root
		if root, err = tree.OpenBeneath(path); err == nil {
			return root, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.New(problem.Failed, "there is no such bundle").At(dir).
			Try("orrery lab ls lists the bundles")
	}
	return nil, problem.New(problem.Failed, "the bundle cannot be read").At(dir).Because(err)
}

// ReadFile reads another file of a bundle, such as its report.
func ReadFile(dir, name string, most int64) ([]byte, error) {
	root, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name, most)
}

// List returns the heads of the bundles in a directory, oldest first. If some cannot be read, it
// returns an error about them together with the others.
func List(dir string) ([]Manifest, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.New(problem.Failed, "the bundles cannot be listed").At(dir).Because(err)
	}
	var heads []Manifest
	var unreadable problem.List
	for _, e := range entries {
		if !e.IsDir() {
			continue // not a bundle
		}
		h, err := listedManifest(filepath.Join(dir, e.Name()))
		var p *problem.Problem
		switch {
		case errors.As(err, &p):
			unreadable = append(unreadable, p)
		case err == nil && h.Format > 0:
			h.ID = sanitize.Line(e.Name()) // it may have been renamed
			heads = append(heads, h)
		}
	}
	slices.SortStableFunc(heads, func(a, b Manifest) int { return a.Began.Compare(b.Began) })
	return heads, unreadable.OrNil()
}

// listedManifest returns the head of a bundle. Its Format is 0 if the directory is not a bundle.
func listedManifest(dir string) (Manifest, error) {
	root, err := openDir(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer root.Close()
	if _, err := root.Lstat(ManifestFile); errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, nil
	}
	return readManifest(root)
}

// readManifest reads bundle.json. A killed run could not record that, so its state becomes Interrupted.
func readManifest(root *tree.Root) (Manifest, error) {
	dir, path := root.Name(), filepath.Join(root.Name(), ManifestFile)
	text, err := root.ReadFile(ManifestFile, maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, problem.New(problem.Failed, "this is not a bundle: it has no %s", ManifestFile).At(dir).
			Try("orrery lab ls lists the bundles")
	}
	if err != nil {
		return Manifest{}, problem.New(problem.Failed, "the bundle cannot be read").At(path).Because(err)
	}
	var version struct{ Format int }
	if err := jsonlimit.Unmarshal(text, &version); err != nil {
		return Manifest{}, problem.New(problem.Failed, "bundle.json is damaged").At(jsonPosition(path, text, err)).
			Because(describeJSONError(err)).
			Try("restore it from a copy; the samples are in %s", TrialsFile)
	}
	if version.Format > Format {
		return Manifest{}, problem.New(problem.Failed, "the bundle has format %d; this orrery reads formats up to %d",
			version.Format, Format).At(path).
			Try("use a newer orrery")
	}
	if version.Format < 1 {
		return Manifest{}, problem.New(problem.Failed, "this is not a bundle: %s has no key format", ManifestFile).At(dir)
	}
	var h Manifest
	if err := jsonlimit.Unmarshal(text, &h); err != nil {
		return Manifest{}, problem.New(problem.Failed, "bundle.json is damaged").At(jsonPosition(path, text, err)).
			Because(describeJSONError(err))
	}
	if err := h.validate(); err != nil {
		return Manifest{}, problem.New(problem.Failed, "bundle.json is damaged").At(path).Because(err)
	}
	if h.State == Running && !isLocked(root) {
		h.State = Interrupted
	}
	return h.sanitized(), nil
}

// readOptional reads a file that may be missing.
func (c *Contents) readOptional(name string, most int64) []byte {
	text, err := c.root.ReadFile(name, most)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.addDamage(name, err)
	}
	return text
}

// eachLine passes the complete lines of a file to take, up to a limit. Text after the last newline is
// still being written, or its run was killed.
func (c *Contents) eachLine(name string, most lineBounds, take func(line []byte) error) {
	text := c.readOptional(name, most.bytes)
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole || len(c.Damaged) >= maxDamaged {
			return
		}
		if n > most.lines {
			c.addDamage(fmt.Sprintf("%s:%d", name, n), fmt.Errorf("there are more than %d lines", most.lines))
			return
		}
		if err := take(line); err != nil {
			c.addDamage(fmt.Sprintf("%s:%d", name, n), err)
		}
		text = rest
	}
}

func (c *Contents) addDamage(where string, err error) {
	c.Damaged = append(c.Damaged, problem.New(problem.Failed, "this line is damaged and was skipped").
		At(filepath.Join(c.Dir, where)).Because(describeJSONError(err)).Try("restore it from a copy, or remove the line"))
}

// describeJSONError returns an error that describes invalid JSON in the words of this project.
func describeJSONError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("invalid JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("%q must not be a %s", sanitize.Line(kind.Field), kind.Value)
	}
	return errors.New(sanitize.Line(err.Error())) // it may quote the content
}

// jsonPosition returns file:line of an error in JSON.
func jsonPosition(path string, text []byte, err error) string {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if errors.As(err, &kind) {
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return path
	}
	return fmt.Sprintf("%s:%d", path, 1+bytes.Count(text[:offset], []byte("\n")))
}
