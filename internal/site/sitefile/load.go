// Package sitefile reads a site.Site from a site directory. It reads site.toml, the requirements
// files, and roles/*/role.toml with the other files of each role. The formats are documented in
// docs/site-file.md and docs/roles.md.
package sitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/strict"
)

// Name is the name of the file in a site directory that declares the site.
const Name = "site.toml"

// format is the format version that the types in file.go and rolefile.go implement.
const format = 1

// Load reads a site directory. Its error is a problem.List with all mistakes.
func Load(dir string) (*site.Site, error) { return LoadCopy(dir, dir) }

// LoadCopy reads a copy of a site directory that Copy has made. Paths in the site file that lead
// outside of the directory are relative to home, the original location.
func LoadCopy(dir, home string) (*site.Site, error) {
	d, s, err := read(dir, home)
	if err != nil {
		return nil, err
	}
	d.close()
	return s, nil
}

// LoadStamped reads such a copy without access to the images named in stamps, which has their known
// stamps. The paths of these images in the site are not valid.
func LoadStamped(dir, home string, stamps map[string]string) (*site.Site, error) {
	d, err := open(dir, home)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.stamps, d.copied = stamps, true
	return d.load(dir)
}

// read reads a site directory. It returns the open directory, which holds the content of the files,
// and the site.
func read(dir, home string) (*directory, *site.Site, error) {
	d, err := open(dir, home)
	if err != nil {
		return nil, nil, err
	}
	d.copied = dir != home
	s, err := d.load(dir)
	if err != nil {
		d.close()
		return nil, nil, err
	}
	return d, s, nil
}

func open(dir, home string) (*directory, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, problem.List{mistake("no such directory").At(dir).Because(err)}
	}
	if home, err = filepath.Abs(home); err != nil {
		return nil, problem.List{mistake("no such directory").At(home).Because(err)}
	}
	d, err := openDirectory(at, home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, problem.List{noSite(dir)}
	}
	if err != nil {
		return nil, problem.List{mistake("the site directory cannot be read").At(dir).Because(problem.PathErrorCause(err))}
	}
	return d, nil
}

func (d *directory) load(said string) (*site.Site, error) {
	l, err := d.loaded(said)
	if err != nil {
		return nil, err
	}
	return l.site, nil
}

// loaded returns the loader after it has read the directory without mistakes.
func (d *directory) loaded(said string) (*loader, error) {
	if _, err := d.tree.Lstat(Name); errors.Is(err, fs.ErrNotExist) {
		return nil, problem.List{noSite(said)}
	}
	content, err := d.read(Name, maxFile)
	if err != nil {
		return nil, problem.List{readProblem("it", err).At(Name)}
	}
	l := newLoader(d)
	l.load(content)
	return l, l.report.list().OrNil()
}

func noSite(dir string) *problem.Problem {
	return mistake("%s has no %s", dir, Name).Try("orrery init %s writes one", dir)
}

// A loader is one reading of a site directory.
type loader struct {
	dir          *directory
	chain        levels
	base         *strict.Node               // what the site file extends, or nil
	without      map[string]map[string]bool // nodes that are removed from ranges, by table
	report       *report
	file         siteFile
	site         *site.Site
	requirements map[string]site.Requirements // by file
	keys         map[*strict.Node][]string    // public keys, by the list that declares them
	repositories []Repository                 // in roles_path
	parts        int                          // parts of all nodes, see maxParts
	values       int                          // values of all site files, see maxValues
}

func newLoader(dir *directory) *loader {
	return &loader{dir: dir, chain: levels{{dir, Name}}, without: map[string]map[string]bool{},
		file: siteFile{Defaults: defaultsTable{nodeSettings: builtinDefaults}}, report: newReport(),
		site: &site.Site{}, requirements: map[string]site.Requirements{}, keys: map[*strict.Node][]string{}}
}

func (l *loader) load(content []byte) {
	root := extender{l}.extended(content)
	if root != nil {
		l.report.roots[Name] = root
		l.decoder(Name).Table(root, "", &l.file)
	}
	*l.site = l.file.Site
	l.roles()
	if root == nil {
		return // a site file could not be parsed
	}
	for _, base := range l.chain[1:] {
		l.site.Extends = append(l.site.Extends, base.dir.home)
	}
	l.tables()
	l.nodes()
	l.sharedRoles()
	shippedReader{l}.readAll()
	l.groups()
	if readServices(l) {
		shippedReader{l}.readAll() // the role of their nodes
	}
	if l.report.full() || l.parts > maxParts {
		return // the running time of the checks grows with the size of the site
	}
	for _, m := range check.Check(l.site) {
		l.report.addIssue(m)
	}
}

// formerKeys renames former names of tables to the present ones. Site files may use "cable" for
// "vethpair".
func formerKeys(r *report, file string, root *strict.Node) {
	old := root.Keys["cable"]
	if old == nil {
		return
	}
	if root.Keys["vethpair"] != nil {
		r.addAt(file, old, mistake(`"cable" and "vethpair" are the same`).Try("write [vethpair.NAME] everywhere"))
	}
	root.Rename("cable", "vethpair")
}

// decode decodes TOML into one of the file types. It reports whether the file could be parsed.
// Mistakes in single values do not count.
func (l *loader) decode(file string, content []byte, into any) bool {
	at := l.parse(file, content)
	if at == nil {
		return false
	}
	l.report.roots[file] = at
	l.decoder(file).Table(at, "", into)
	return true
}

// parse parses TOML. It returns nil if that is impossible.
func (l *loader) parse(file string, content []byte) *strict.Node {
	before, isSiteFile := 0, path.Base(file) == Name
	if isSiteFile {
		before = l.values
	}
	values, much := measure(content, before)
	if much != nil {
		l.report.add(mistake("%s", much.What).At(fmt.Sprintf("%s:%d", file,
			much.Line)).Try("make several sites, or put data into a file of a role"))
		return nil
	}
	at, err := strict.Parse(content)
	if err != nil {
		l.report.add(mistake("this is not TOML: %s", err.What).At(fmt.Sprintf("%s:%d", file, err.Line)))
		return nil
	}
	if isSiteFile {
		l.values = values
		formerKeys(l.report, file, at)
	}
	if n, ok := at.At("format").Value.(int64); ok && n != format {
		l.report.addAt(file, at.Keys["format"], mistake("format %d is unknown", n).Try("this Orrery reads format %d",
			format))
	}
	return at
}

// decoder returns the decoder for parts of a file.
func (l *loader) decoder(file string) *strict.Decoder {
	d := &strict.Decoder{
		Report:        func(at *strict.Node, p *problem.Problem) { l.report.addAt(file, at, p) },
		OnUnknownKey:  l.report.misspelt,
		MaxStringLen:  maxString,
		MaxNameLen:    maxName,
		TooManyErrors: l.report.full,
	}
	if file != Name {
		d.MaxStringLen = maxRole // scripts and inline file contents
	}
	return d
}
