package image

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// installed reads the Debian packages of a tree, NAME=VERSION, from dpkg's own file: no program of the tree is run.
func installed(tree string) ([]string, error) {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := root.ReadFile("var/lib/dpkg/status")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []string
	var name, version string
	whole := false
	for line := range strings.Lines(string(text) + "\n") {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "Package":
			name = value
		case "Version":
			version = value
		case "Status":
			whole = strings.HasSuffix(value, " installed")
		case "":
			if name != "" && whole {
				all = append(all, name+"="+version)
			}
			name, version, whole = "", "", false
		}
	}
	slices.Sort(all)
	return all, nil
}

// metadata is where Python packages say what they are: those that pip installed from a wheel, and those that setup.py installed.
var metadata = []string{"*.dist-info/METADATA", "*.egg-info/PKG-INFO", "*.egg-info"}

// pythonPackages reads the Python packages of the node's virtual environment, NAME==VERSION, from their metadata.
func pythonPackages(tree string) ([]string, error) {
	var all []string
	for _, pattern := range metadata {
		files, err := filepath.Glob(filepath.Join(tree, "opt/orrery/venv/lib/python*/site-packages", pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if errors.Is(err, unix.EISDIR) {
				continue
			}
			if err != nil {
				return nil, err
			}
			header, _, _ := strings.Cut(string(text), "\n\n")
			var name, version string
			for line := range strings.Lines(header) {
				if value, ok := strings.CutPrefix(line, "Name: "); ok {
					name = strings.TrimSpace(value)
				}
				if value, ok := strings.CutPrefix(line, "Version: "); ok {
					version = strings.TrimSpace(value)
				}
			}
			all = append(all, name+"=="+version)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
