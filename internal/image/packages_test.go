package image

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPythonPackages: what pip installed and what setup.py installed say what they are in different files.
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
	all, err := pythonPackages(tree)
	if want := []string{"docopt==0.6.2", "flat==2", "six==1.16.0"}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
}
