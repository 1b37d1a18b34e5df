package pkgmirror

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/tree"
)

// wheels are the Python packages of the mirror, both wheels and source archives, according to its
// index.
type wheels struct {
	known   map[string]map[string]string // by package: file name to SHA-256
	changed map[string]bool              // names of packages
	doomed  []string
	simple  string
}

// readWheels reads the current index.
func readWheels(simple string) (*wheels, error) {
	w := &wheels{known: map[string]map[string]string{}, changed: map[string]bool{}, simple: simple}
	pages, err := filepath.Glob(filepath.Join(simple, "*", "index.html"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := tree.ReadFile(page, maxIndexBytes)
		if err != nil {
			return nil, err
		}
		w.known[filepath.Base(filepath.Dir(page))] = links(string(text))
	}
	return w, nil
}

// missing returns the packages without a file that the version of Python could install. Damaged
// files do not count.
func (w *wheels) missing(python string, packages []Package) ([]Package, error) {
	var lacks []Package
	for _, p := range packages {
		found := false
		for file, digest := range w.known[p.Name] {
			pkg, ok := packageOfFile(file)
			if !ok || !sameVersion(pkg.Version, p.Version) || !isInstallable(file, python, machine()) {
				continue
			}
			whole, err := isIntact(filepath.Join(w.simple, p.Name, file), digest)
			if err != nil {
				return nil, err
			}
			if !whole {
				delete(w.known[p.Name], file)
				w.changed[p.Name] = true
			}
			found = found || whole
		}
		if !found {
			lacks = append(lacks, p)
		}
	}
	return lacks, nil
}

const wantedName = "wanted.txt" // in pip's target directory

const outputDir = image.OutputDir

// supplyWheels makes the layer's own pip download what it installed before, so that the files fit.
func (r *run) supplyWheels(ctx context.Context, in host.Runner, n need, missing []Package) error {
	lines, hashed := pinnedRequirements(n.layer.Pins, missing)
	args := []string{role.Venv + "/bin/pip", "download", "--no-input", "--disable-pip-version-check",
		"--progress-bar=off", "--no-deps", "--dest", "wheels"}
	if hashed {
		args = append(args, "--require-hashes")
	} else {
		lines = nil
		for _, p := range missing {
			lines = append(lines, p.Name+"=="+p.Version)
		}
	}
	// An earlier run may have left some files. pip checks them against the index.
	if err := r.writeWanted([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		return err
	}
	if err := r.pip(ctx, in, append(args, "--requirement", wantedName)); err != nil {
		return problem.New(problem.Failed, "the Python packages of %s could not be fetched", n.layer.Title).Because(err).
			Try("check that they are still in the index; [mirror] pypi in site.toml names another")
	}
	if err := r.needsOfSources(ctx, in); err != nil {
		return err
	}
	if err := r.placeWheels(); err != nil {
		return err
	}
	still, err := r.wheels.missing(n.layer.Runs, missing)
	if err != nil || len(still) == 0 {
		return err
	}
	return problem.New(problem.Failed, "%s: the index has no file of %s that its Python %s can install", n.layer.Title,
		still[0], n.layer.Runs)
}

// writeWanted writes what pip is to fetch. Programs in the container may have put anything in its place.
func (m *Mirror) writeWanted(text []byte) error {
	in, err := tree.Open(m.incoming())
	if err != nil {
		return err
	}
	defer in.Close()
	return in.Put(tree.File{Path: wantedName, Content: text, Uid: os.Geteuid(), Gid: os.Getegid(), Mode: 0o644},
		os.Geteuid(), os.Getegid())
}

func (m *Mirror) pip(ctx context.Context, in host.Runner, args []string) error {
	// Do not run in /, because file names in arguments are relative to the output directory.
	script := append([]string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, outputDir}, args...)
	return in.Run(ctx, host.Command{Args: script, Stdout: m.Log, Stderr: m.Log})
}

// sourcesScript prints what is needed to build the source archives in a directory (PEP 518).
const sourcesScript = `
import pathlib, sys, tarfile, zipfile
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
needs = set()
for file in pathlib.Path("wheels").iterdir():
    if file.name.endswith(".whl"):
        continue
    text = "[build-system]\nrequires = ['setuptools', 'wheel']"
    if file.name.endswith(".zip"):
        archive = zipfile.ZipFile(file)
        names, read = archive.namelist(), archive.read
    else:
        archive = tarfile.open(file)
        names, read = archive.getnames(), lambda name: archive.extractfile(name).read()
    for name in names:
        if name.count("/") == 1 and name.endswith("/pyproject.toml"):
            text = read(name).decode()
    needs |= set(tomllib.loads(text).get("build-system", {}).get("requires", ["setuptools"])) | {"setuptools", "wheel"}
print(*sorted(needs), sep="\n")
`

// needsOfSources downloads what is needed to build packages that exist only as source. pip will
// need it to install them.
func (m *Mirror) needsOfSources(ctx context.Context, in host.Runner) error {
	incoming, err := tree.Open(m.incoming())
	if err != nil {
		return err
	}
	defer incoming.Close()
	files, err := incoming.Names("wheels", maxWheels)
	if err != nil || !slices.ContainsFunc(files, isSource) {
		return err
	}
	script := []string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, outputDir, role.Venv + "/bin/python", "-c", sourcesScript}
	needed, err := host.Output(ctx, in, host.Command{Args: script, Stderr: m.Log}, 1<<20)
	if err != nil {
		return problem.New(problem.Failed, "the build requirements of Python packages cannot be determined").Because(err)
	}
	if err := m.writeWanted(needed); err != nil {
		return err
	}
	err = m.pip(ctx, in, []string{role.Venv + "/bin/pip", "download", "--no-input", "--disable-pip-version-check",
		"--progress-bar=off",
		"--only-binary=:all:", "--dest", "for-builds", "--requirement", wantedName})
	if err != nil {
		return problem.New(problem.Failed, "the build requirements of Python packages could not be fetched").Because(err)
	}
	return nil
}

// maxWheels is the maximum number of files that pip may have downloaded.
const maxWheels = 1 << 16

// placeWheels adds the files that pip has downloaded to the new index. The directory is untrusted,
// because programs of packages ran there.
func (r *run) placeWheels() error {
	in, err := tree.Open(r.incoming())
	if err != nil {
		return err
	}
	defer in.Close()
	for _, dir := range []string{"wheels", "for-builds"} {
		files, err := in.Names(dir, maxWheels)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, file := range files {
			pkg, ok := packageOfFile(file)
			if !ok || !validPython(pkg) {
				continue
			}
			bytes, err := r.placeWheel(in, dir, file, pkg.Name)
			if err != nil {
				return err
			}
			if bytes == 0 {
				continue
			}
			r.done.Bytes += bytes
			r.done.Fetched++
			if dir == "for-builds" {
				if err := r.noteForBuilds(file); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *run) placeWheel(in *tree.Root, dir, file, name string) (int64, error) {
	digest, bytes, err := r.importFile(in, path.Join(dir, file), filepath.Join(r.simple(), name, file), "")
	if err != nil || digest == "" {
		return 0, err
	}
	w := r.wheels
	if w.known[name] == nil {
		w.known[name] = map[string]string{}
	}
	w.known[name][file], w.changed[name] = digest, true
	return bytes, in.Remove(path.Join(dir, file))
}

// forBuildsPath returns the path of the list of files that are needed only to build sources. Prune
// keeps these files.
func (m *Mirror) forBuildsPath() string { return filepath.Join(m.Dir, "pypi", "for-builds.txt") }

func (m *Mirror) noteForBuilds(file string) error {
	text, err := os.ReadFile(m.forBuildsPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := append(strings.Fields(string(text)), file)
	slices.Sort(lines)
	all := strings.Join(slices.Compact(lines), "\n") + "\n"
	return host.WriteFile(host.File{Path: m.forBuildsPath(), Content: []byte(all), Mode: 0o644})
}

// prune removes from the index what no layer needs.
func (w *wheels) prune(layers []*Layer, forBuilds []string) {
	for name, files := range w.known {
		for file := range files {
			if slices.Contains(forBuilds, file) || needed(layers, file) {
				continue
			}
			delete(files, file)
			w.changed[name] = true
			w.doomed = append(w.doomed, filepath.Join(w.simple, name, file))
		}
	}
}

func needed(layers []*Layer, file string) bool {
	pkg, ok := packageOfFile(file)
	return ok && slices.ContainsFunc(needs(layers), func(n need) bool {
		return slices.ContainsFunc(n.python, func(p Package) bool {
			return p.Name == pkg.Name && sameVersion(p.Version, pkg.Version)
		})
	})
}
