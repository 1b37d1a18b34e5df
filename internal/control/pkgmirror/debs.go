package pkgmirror

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/tree"
)

// debs are the Debian packages of the mirror according to its index, and the changes to make.
type debs struct {
	archive   string                           // directory of the packages
	known     map[string]map[Package]paragraph // by suite
	overrides map[string]map[string]override
	changed   bool
	keep      map[string]bool // files that stay in the archive, or nil for all
	doomed    []string
}

// readDebs reads the current index. If there is none, the files in the pool will be checked against
// the archives again.
func readDebs(archive string) (*debs, error) {
	d := &debs{archive: archive, known: map[string]map[Package]paragraph{}, overrides: map[string]map[string]override{}}
	indexes, err := filepath.Glob(filepath.Join(archive, "dists", "*", "*", "binary-"+architecture(), "Packages"))
	if err != nil {
		return nil, err
	}
	for _, file := range indexes {
		text, err := tree.ReadFile(file, maxIndexBytes)
		if err != nil {
			return nil, err
		}
		suite := strings.Split(strings.TrimPrefix(file, filepath.Join(archive, "dists")+"/"), "/")[0]
		for pkg, p := range parseOffers(string(text), architecture()) {
			d.add(suite, pkg, p)
		}
	}
	files, err := filepath.Glob(filepath.Join(archive, "indices", "override.*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := tree.ReadFile(file, maxIndexBytes)
		if err != nil {
			return nil, err
		}
		d.overrides[strings.TrimPrefix(filepath.Base(file), "override.")] = readOverrides(string(text))
	}
	return d, nil
}

func (d *debs) add(suite string, pkg Package, p paragraph) {
	if d.known[suite] == nil {
		d.known[suite] = map[Package]paragraph{}
	}
	d.known[suite][pkg] = p
}

// missingDebs returns the packages that the mirror lacks, or whose files differ from the index. It
// removes damaged files.
func (d *debs) missingDebs(suite string, packages []Package) ([]Package, error) {
	var lacks []Package
	for _, pkg := range packages {
		p, known := d.known[suite][pkg]
		if known {
			whole, err := isIntact(filepath.Join(d.archive, filepath.Clean("/"+p["filename"])), p["sha256"])
			if err != nil {
				return nil, err
			}
			if whole {
				continue
			}
			delete(d.known[suite], pkg)
		}
		lacks = append(lacks, pkg)
	}
	return lacks, nil
}

// supplyDebs gets packages from what an earlier run left, from the cache of the builders, and from
// the archive.
func (r *run) supplyDebs(ctx context.Context, in host.Runner, n need, missing []Package) (lost []string, err error) {
	names := make([]string, len(missing))
	for i, p := range missing {
		names[i] = p.Name
	}
	text, err := r.Store.Cache.Available(ctx, in, n.layer.distribution(), names, r.Log)
	if err != nil {
		return nil, err
	}
	offered := parseOffers(string(text), architecture())
	var fetch []string
	for _, pkg := range missing {
		p, ok := offered[pkg]
		if !ok {
			p, ok = r.findStored(ctx, n.layer.Suite, pkg)
		}
		if !ok {
			if !n.layer.Imported {
				lost = append(lost, pkg.String())
			}
			continue
		}
		placed, err := r.placeDeb(n.layer.Suite, pkg, p)
		if err != nil {
			return nil, err
		}
		if !placed {
			fetch = append(fetch, pkg.String())
		}
	}
	if len(fetch) == 0 {
		return lost, nil
	}
	if err := r.Store.Cache.Fetch(ctx, in, n.layer.distribution(), fetch, r.Log); err != nil {
		return lost, err
	}
	for _, text := range fetch {
		name, version, _ := strings.Cut(text, "=")
		pkg := Package{name, version}
		if placed, err := r.placeDeb(n.layer.Suite, pkg, offered[pkg]); err != nil || !placed {
			lost = append(lost, text)
			if err != nil {
				return lost, err
			}
		}
	}
	return lost, nil
}

// placeDeb puts a package into the pool if a file with the archive's digest is available on this host.
func (r *run) placeDeb(suite string, pkg Package, p paragraph) (bool, error) {
	arch := p["architecture"]
	inPool := poolPath(suite, pkg.Name, pkg.Version, arch)
	to := filepath.Join(r.apt(), inPool)
	whole, err := isIntact(to, p["sha256"])
	if err != nil || p["sha256"] == "" || !architectureName().MatchString(arch) {
		return false, err
	}
	file := cacheName(pkg.Name, pkg.Version, arch)
	for _, source := range []struct {
		dir   string
		count *int
	}{{r.incoming(), &r.done.Fetched}, {filepath.Dir(r.Store.Cache.Archive(file)), &r.done.Cached}} {
		if whole {
			break
		}
		bytes, err := r.importFrom(source.dir, file, to, p["sha256"])
		if err != nil {
			return false, err
		}
		if whole = bytes > 0; whole {
			*source.count++
			r.done.Bytes += bytes
		}
	}
	if whole {
		entry := maps.Clone(p)
		entry["filename"] = inPool
		r.debs.addPooled(suite, pkg, entry)
	}
	return whole, nil
}

// importFrom copies a file from a directory, if it exists and has the digest, and returns its size.
func (m *Mirror) importFrom(dir, file, to, digest string) (int64, error) {
	from, err := tree.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer from.Close()
	_, bytes, err := m.importFile(from, file, to, digest)
	if err == nil && bytes > 0 && dir == m.incoming() {
		err = from.Remove(file)
	}
	return bytes, err
}

// addPooled adds a package in the pool to the new index.
func (d *debs) addPooled(suite string, pkg Package, p paragraph) {
	d.add(suite, pkg, p)
	d.changed = true
	if d.overrides[suite] == nil {
		d.overrides[suite] = map[string]override{}
	}
	if p["priority"] != "" && p["section"] != "" {
		d.overrides[suite][pkg.Name] = override{p["priority"], p["section"]}
	}
}

// findStored looks for a package that has left its archive, in what the builders or an earlier run
// stored. apt verified the package when it was fetched. Now only the package itself can show
// whether it is complete.
func (m *Mirror) findStored(ctx context.Context, suite string, pkg Package) (paragraph, bool) {
	for _, arch := range []string{architecture(), "all"} {
		for _, file := range []string{
			filepath.Join(m.apt(), poolPath(suite, pkg.Name, pkg.Version, arch)),
			m.Store.Cache.Archive(cacheName(pkg.Name, pkg.Version, arch)),
		} {
			digest, err := digestOf(file)
			if err != nil || digest == "" {
				continue
			}
			if own := paragraphs(fieldsOf(ctx, file)); len(own) == 1 && own[0].pkg() == pkg {
				p := own[0].paragraph
				p["sha256"] = digest
				return p, true
			}
		}
	}
	return nil, false
}

// fieldsOf returns the control fields of a package, or "" if it is damaged. Builds could write to
// the file, so the program that reads it runs without privileges.
func fieldsOf(ctx context.Context, file string) string {
	from, err := tree.OpenFile(file)
	if err != nil {
		return ""
	}
	defer from.Close()
	whole := host.Command{Args: []string{"dpkg-deb", "--fsys-tarfile", "-"}, Stdin: from, Stdout: io.Discard}
	if err := (host.Unprivileged{}).Run(ctx, whole); err != nil {
		return ""
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	text, err := host.Output(ctx, host.Unprivileged{},
		host.Command{Args: []string{"dpkg-deb", "--field", "-"}, Stdin: from}, maxFieldsBytes)
	if err != nil {
		return ""
	}
	return string(text)
}

// maxFieldsBytes limits the control fields of a package.
const maxFieldsBytes = 1 << 20

// prune decides which packages no layer needs.
func (d *debs) prune(layers []*Layer) {
	d.keep = map[string]bool{}
	for _, n := range needs(layers) {
		for _, pkg := range n.debian {
			if p, ok := d.known[n.layer.Suite][pkg]; ok {
				d.keep[poolPath(n.layer.Suite, pkg.Name, pkg.Version, p["architecture"])] = true
			}
		}
	}
	d.changed = true
}

// remaining returns the paragraphs of an index that stay, and marks the files of the others for
// removal.
func (d *debs) remaining(index string) string {
	if d.keep == nil {
		return index
	}
	var b strings.Builder
	for _, s := range paragraphs(index) {
		if file := s.paragraph["filename"]; d.keep[file] {
			b.WriteString(s.text)
		} else {
			if strings.HasPrefix(file, "pool/") && filepath.IsLocal(file) {
				d.doomed = append(d.doomed, filepath.Join(d.archive, file))
			}
		}
	}
	slices.Sort(d.doomed)
	d.doomed = slices.Compact(d.doomed)
	return b.String()
}
