package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/site/distro"
)

// TestPythonPackages: packages that pip or setup.py installed have their metadata in different
// files.
func TestPythonPackages(t *testing.T) {
	tree := t.TempDir()
	packages := filepath.Join(tree, "opt/orrery/venv/lib/python3.11/site-packages")
	for path, text := range map[string]string{
		"six-1.16.0.dist-info/METADATA":         "Metadata-Version: 2.1\nName: six\nVersion: 1.16.0\n\nVersion: 9\n",
		"docopt-0.6.2-py3.11.egg-info/PKG-INFO": "Metadata-Version: 1.1\nName: docopt\nVersion: 0.6.2\n",
		"flat-2-py3.11.egg-info":                "Name: flat\nVersion: 2\n",
		"half.dist-info/RECORD":                 "",
	} {
		path = filepath.Join(packages, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := read(tree, pythonPackages)
	if want := []string{"docopt==0.6.2", "flat==2", "six==1.16.0"}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
}

// obedient counts the commands that it gets.
type obedient struct {
	host.Runner
	commands int
}

func (c *obedient) Run(context.Context, host.Command) error { c.commands++; return nil }

// TestListsByClock: package lists are updated if they are old, or from a time when the clock was
// ahead.
func TestListsByClock(t *testing.T) {
	in := &obedient{}
	i := &installer{Packages: distro.OrDefault("").Packages, in: in, log: io.Discard,
		lists: filepath.Join(t.TempDir(), "lists"), program: []string{"apt"}}
	must(t, os.MkdirAll(i.lists, 0o755))
	for _, c := range []struct {
		stamp time.Duration // relative to now; 0 leaves the stamp unchanged
		fresh bool
		want  int
	}{{0, false, 1}, {0, false, 0}, {-2 * listsAge, false, 1}, {48 * time.Hour, false, 1}, {48 * time.Hour, true, 1},
		{0, false, 0}} {
		if at := time.Now().Add(c.stamp); c.stamp != 0 {
			must(t, os.Chtimes(filepath.Join(i.lists, "orrery-updated"), at, at))
		}
		in.commands = 0
		l, err := i.readLists(t.Context(), c.fresh)
		must(t, err)
		l.Release()
		if in.commands != c.want {
			t.Errorf("a stamp of %s, fresh %v: updated %d times, not %d", c.stamp, c.fresh, in.commands, c.want)
		}
	}
}
