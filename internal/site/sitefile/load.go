// Package sitefile reads a site.Site from a site directory: site.toml, roles/*/role.toml with the
// files beside them, and requirements files. What may be written is described in docs/site-file.md
// and docs/roles.md.
package sitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/strict"
)

// Name is the file in a site directory that declares the site.
const Name = "site.toml"

// format is the one that the types in file.go and rolefile.go describe.
const format = 1

// Load reads a site directory. Its error is a problem.List of every mistake that there is.
func Load(dir string) (*site.Site, error) { return LoadCopy(dir, dir) }

// LoadCopy reads the copy that Keep has made of a site directory. What the site file names outside
// of that is found from home, where the copy was taken.
func LoadCopy(dir, home string) (*site.Site, error) {
	d, s, err := read(dir, home)
	if err != nil {
		return nil, err
	}
	d.close()
	return s, nil
}

// LoadStamped reads such a copy without looking at what it imports: for images of these names, the
// stamps are known. What it returns of those is no path.
func LoadStamped(dir, home string, stamps map[string]string) (*site.Site, error) {
	d, err := open(dir, home)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.stamps = stamps
	return d.load(dir)
}

// read reads a site directory, and returns that, too, with all that was read of it.
func read(dir, home string) (*directory, *site.Site, error) {
	d, err := open(dir, home)
	if err != nil {
		return nil, nil, err
	}
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
		return nil, problem.List{mistake("the site directory cannot be read").At(dir).Because(problem.Reason(err))}
	}
	return d, nil
}

func (d *directory) load(said string) (*site.Site, error) {
	if _, err := d.tree.Lstat(Name); errors.Is(err, fs.ErrNotExist) {
		return nil, problem.List{noSite(said)}
	}
	content, err := d.read(Name, maxFile)
	if err != nil {
		return nil, problem.List{wrong("it", err).At(Name)}
	}
	l := newLoader(d)
	l.load(content)
	if err := l.report.list().OrNil(); err != nil {
		return nil, err
	}
	return l.site, nil
}

func noSite(dir string) *problem.Problem {
	return mistake("%s has no %s", dir, Name).Try("orrery init %s writes one", dir)
}

// A loader is one reading of a site directory.
type loader struct {
	dir          *directory
	report       *report
	file         siteFile
	site         *site.Site
	requirements map[string]site.Requirements // by file
	parts        int                          // of which all nodes consist, see maxParts
}

func newLoader(dir *directory) *loader {
	return &loader{dir: dir, file: siteFile{Defaults: defaultsTable{choices: usual}}, report: newReport(),
		site: &site.Site{}, requirements: map[string]site.Requirements{}}
}

func (l *loader) load(content []byte) {
	whole := l.decode(Name, content, &l.file)
	*l.site = l.file.Site
	l.roles()
	if !whole {
		return // nothing is known of the site
	}
	l.tables()
	l.nodes()
	l.groups()
	if l.report.full() || l.parts > maxParts {
		return // the rules take a time that grows with the site
	}
	for _, m := range check.Check(l.site) {
		l.report.rule(m)
	}
}

// formerKeys renames former keys of tables to their present names: site files may say "cable" where it is
// "vethpair" now.
func (l *loader) formerKeys(root *strict.Node) {
	old := root.Keys["cable"]
	if old == nil {
		return
	}
	if root.Keys["vethpair"] != nil {
		l.report.wrong(Name, old, mistake(`"cable" and "vethpair" are the same`).Try("write [vethpair.NAME] everywhere"))
	}
	root.Rename("cable", "vethpair")
}

// decode reads TOML into one of the file types and reports whether it could. Mistakes in single
// values do not count.
func (l *loader) decode(file string, content []byte, into any) bool {
	if much := measure(content); much != nil {
		l.report.add(mistake("%s", much.What).At(fmt.Sprintf("%s:%d", file,
			much.Line)).Try("make several sites, or put data into a file of a role"))
		return false
	}
	at, err := strict.Parse(content)
	if err != nil {
		l.report.add(mistake("this is not TOML: %s", err.What).At(fmt.Sprintf("%s:%d", file, err.Line)))
		return false
	}
	if file == Name {
		l.formerKeys(at)
	}
	l.report.roots[file] = at
	l.decoder(file).Table(at, "", into)
	if n, ok := at.At("format").Value.(int64); ok && n != format {
		l.report.wrong(file, at.Keys["format"], mistake("format %d is not known here", n).Try("this Orrery reads format %d",
			format))
	}
	return true
}

// decoder returns what decodes parts of a file.
func (l *loader) decoder(file string) *strict.Decoder {
	d := &strict.Decoder{
		Wrong:    func(at *strict.Node, p *problem.Problem) { l.report.wrong(file, at, p) },
		Misspelt: l.report.misspelt,
		Longest:  maxString,
		Name:     maxName,
		Enough:   l.report.full,
	}
	if file != Name {
		d.Longest = maxRole // scripts, and contents of files
	}
	return d
}
