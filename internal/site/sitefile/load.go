// Package sitefile makes a site.Site from a site directory: site.toml, roles/*/role.toml with all that is beside
// them, and requirements files. What may be written is described in docs/site-file.md and docs/roles.md.
package sitefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
)

// Name is the file in a site directory that declares the site.
const Name = "site.toml"

// format is the one that the types in file.go and rolefile.go describe.
const format = 1

// Load reads a site directory. Its error is a problem.List of every mistake that there is.
func Load(dir string) (*site.Site, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, problem.List{mistake("no such directory").At(dir).Because(err)}
	}
	content, err := os.ReadFile(filepath.Join(abs, Name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, problem.List{mistake("%s has no %s", dir, Name).Try("orrery init %s writes one", dir)}
	}
	if err != nil {
		return nil, problem.List{mistake("cannot be read").At(Name).Because(err)}
	}
	l := newLoader(abs)
	l.load(content)
	if err := l.report.list().OrNil(); err != nil {
		return nil, err
	}
	return l.site, nil
}

// A loader is one reading of a site directory.
type loader struct {
	dir          string
	report       *report
	file         siteFile
	site         *site.Site
	requirements map[string]site.Requirements // by file
}

func newLoader(dir string) *loader {
	return &loader{dir: dir, report: newReport(), site: &site.Site{}, requirements: map[string]site.Requirements{}}
}

func (l *loader) load(content []byte) {
	whole := l.decode(Name, content, &l.file)
	l.roles()
	if !whole {
		return // nothing is known of the site
	}
	l.tables()
	l.nodes()
	l.groups()
	for _, m := range check.Check(l.site) {
		l.report.rule(m)
	}
}

// decode reads TOML into one of the file types and reports whether it could. Mistakes in single values do not count.
func (l *loader) decode(file string, content []byte, into any) bool {
	values, err := unmarshal(content)
	if err != nil {
		l.report.add(mistake("this is not TOML: %s", err.what).At(fmt.Sprintf("%s:%d", file, err.line)))
		return false
	}
	at, twice := positions(content)
	if twice != nil {
		l.report.add(mistake("this is not TOML: %s", twice.what).At(fmt.Sprintf("%s:%d", file, twice.line)))
		return false
	}
	l.report.roots[file] = at
	d := decoder{
		wrong:    func(at *place, p *problem.Problem) { l.report.wrong(file, at, p) },
		misspelt: l.report.misspelt,
	}
	d.decode("", values, at, reflect.ValueOf(into).Elem())
	if n, ok := values["format"].(int64); ok && n != format {
		l.report.wrong(file, at.keys["format"], mistake("format %d is not known here", n).Try("this Orrery reads format %d", format))
	}
	return true
}
