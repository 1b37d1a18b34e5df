package image

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// read opens a tree and returns the result of what.
func read[T any](dir string, what func(*tree.Root) (T, error)) (none T, err error) {
	in, err := tree.Open(dir)
	if err != nil {
		return none, err
	}
	defer in.Close()
	return what(in)
}

// venvLib is the directory with a node's Python packages by version of Python.
const venvLib = "opt/orrery/venv/lib"

// pythonPackages returns the Python packages of the node's virtual environment as NAME==VERSION,
// from their metadata.
func pythonPackages(in *tree.Root) ([]string, error) {
	pythons, err := in.Names(venvLib, 1<<10)
	if isMissing(err) {
		return nil, nil
	}
	var all []string
	for _, python := range pythons {
		if err == nil && strings.HasPrefix(python, "python") {
			var some []string
			some, err = packagesIn(in, path.Join(venvLib, python, "site-packages"))
			all = append(all, some...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// PythonVersion returns the version of Python of the virtual environment in a tree, such as "3.11", or
// "" if there is none.
func PythonVersion(tree string) string {
	dirs, err := filepath.Glob(filepath.Join(tree, venvLib, "python3*"))
	var major, minor int
	if err != nil || len(dirs) == 0 {
		return ""
	}
	if _, err := fmt.Sscanf(filepath.Base(dirs[0]), "python%d.%d", &major, &minor); err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", major, minor)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

// packagesIn returns the packages in a directory: those that pip installed from a wheel, and those
// that setup.py installed.
func packagesIn(in *tree.Root, dir string) ([]string, error) {
	names, err := in.Names(dir, 1<<16)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	var all []string
	for _, name := range names {
		var files []string
		switch {
		case strings.HasSuffix(name, ".dist-info"):
			files = []string{"METADATA"}
		case strings.HasSuffix(name, ".egg-info"):
			files = []string{"PKG-INFO", "."}
		}
		for _, file := range files {
			text, err := in.ReadFile(path.Join(dir, name, file), maxMetadataBytes)
			if isMissing(err) || errors.Is(err, tree.ErrNotRegular) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if pkg := packageOf(string(text)); !strings.HasPrefix(pkg, "==") && !strings.HasSuffix(pkg, "==") {
				all = append(all, pkg)
			}
		}
	}
	return all, nil
}

// maxMetadataBytes limits the metadata of a Python package, including its description.
const maxMetadataBytes = 16 << 20

func packageOf(metadata string) string {
	header, _, _ := strings.Cut(metadata, "\n\n")
	var name, version string
	for line := range strings.Lines(header) {
		if value, ok := strings.CutPrefix(line, "Name: "); ok {
			name = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, "Version: "); ok {
			version = strings.TrimSpace(value)
		}
	}
	return name + "==" + version
}
