// Package ci tests a site in a fresh twin. It creates the twin, runs the declared tests in the
// twin's nodes, and destroys the twin.
package ci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/control/testrun"
	"orrery/internal/control/twins"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/text/humanize"
)

// Options say what to test, and how.
type Options struct {
	// a directory, or the name of a site that is up on this machine, or "" for the session's site
	Site    string
	Release string        // the release to test, "next" for the highest one, or "" for the site as declared
	Only    []string      // selectors of the nodes to create and test, or none for all
	Keep    bool          // do not destroy the twin
	Timeout time.Duration // for everything except destroying the twin
	JUnit   string        // file name of the report, or "" for none
	Orrery  string        // the version of this program, for the report
}

// A Watcher displays the progress of a run.
type Watcher interface {
	control.Watcher     // for creating and destroying the twin
	TwinOutput() string // the output for the twin so far, for the report
	Tested(result testrun.Result)
	Swept(twin string) // called before a twin that a killed run left is destroyed
}

// A Runner is one run of the tests of a site, in a twin that is created for it.
type Runner struct {
	Report testrun.Report
	Twin   twin.Record
	Kept   bool // the twin was not destroyed

	Session  *control.Session
	options  Options
	watcher  Watcher
	original *site.Site
	site     *site.Site // the twin
	keys     *secret.Keyring
}

// New finds out what to test. It reports errors in the options and in the site file before anything
// is done.
func New(c *control.Session, w Watcher, o Options) (*Runner, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	if c.Twin != "" {
		return nil, problem.New(problem.Usage, "orrery ci creates its own twin").Try("omit --twin")
	}
	if o.Site == "" {
		var err error
		if o.Site, err = c.Directory(); err != nil {
			return nil, err
		}
	}
	s, dir, err := twins.LoadOriginal(c, o.Site)
	if err != nil {
		return nil, err
	}
	if len(s.Tests) == 0 {
		return nil, problem.New(problem.Mistake, "site %s declares no test", s.Name).At(filepath.Join(dir, "site.toml")).
			Try("[test.NAME] node = …, command = […]")
	}
	t := twin.Options{Name: newName(time.Now(), os.Getpid()), Owner: control.UserName()}
	if o.Release != "" {
		if t.Release, err = register.ReleaseNumber(s, o.Release); err != nil {
			return nil, err
		}
	}
	if t.Only, err = control.SelectedNames(s, o.Only); err != nil {
		return nil, err
	}
	made, err := twin.New(s, t)
	if err != nil {
		return nil, err
	}
	if len(made.Tests) == 0 {
		return nil, problem.New(problem.Usage, "none of the %s is on a node of --only",
			humanize.Plural(len(s.Tests), "test")).Try("orrery query all lists the nodes")
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	mine := *c
	mine.SiteDir, mine.Watcher = dir, w
	expires := time.Time{}
	if !o.Keep { // if this run is killed, the hosts will destroy the twin
		expires = time.Now().Add(o.Timeout + time.Hour).UTC().Truncate(time.Second)
	}
	return &Runner{
		Report: testrun.Report{Site: s.Name, Host: name, Began: time.Now(),
			Properties: properties(made, t.Release, o.Orrery)},
		Twin: twin.Record{Site: s.Name, Dir: dir, Options: t, Volumes: site.CopyEmpty,
			Created: time.Now().UTC().Truncate(time.Second), Expires: expires},
		Session: &mine, options: o, watcher: w, original: s, site: made, keys: secret.NewKeyring(made, c.Dirs),
	}, nil
}

const twinPrefix = "ci-"

// newName returns a name for a twin that no other run has.
func newName(now time.Time, pid int) string {
	return twinPrefix + spec.DigestBytes(fmt.Append(nil, now.UnixNano(), pid))[:10]
}

// properties returns what was tested, for the report.
func properties(s *site.Site, release int, orrery string) [][2]string {
	all := [][2]string{{"site", s.Name}, {"release", site.ReleaseName(release)}, {"orrery", orrery}}
	maker, seen := spec.NewBuilder(s), map[string]bool{}
	var layers []string
	for i := range s.Nodes {
		for _, l := range maker.Layers(&s.Nodes[i]) {
			if !seen[l.Digest] {
				seen[l.Digest] = true
				layers = append(layers, l.Digest+" "+l.Title)
			}
		}
	}
	return append(all, [2]string{"layers", strings.Join(layers, "; ")})
}
