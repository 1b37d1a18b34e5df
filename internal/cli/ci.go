package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/ci"
	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
)

// ciRun is one run of the tests of a site, in a twin made for it.
type ciRun struct {
	*app
	original *site.Site
	record   register.TwinRecord
	site     *site.Site // the twin
	keys     *secret.Keyring
	log      bytes.Buffer // what bringing up and ending it printed
	report   ci.Report
}

func (a *app) ciVerb() *cobra.Command {
	var release, junit string
	var only []string
	var keep bool
	timeout := 30 * time.Minute
	c := &cobra.Command{
		Use:   "ci [SITE]",
		Short: "Test a site or a release: make a fresh twin, run its tests, write a report",
		Long: `Makes a fresh twin of a site, waits until it is healthy, runs the commands of [test.*] inside its nodes in the order of the site file, and destroys
the twin, whatever happens. Name the site by its directory or, if it is up on this host, by its name. The exit status is 0 if all tests passed and
11 if one failed. Use it in nightly jobs and continuous integration.`,
		Example: "  orrery ci examples/toykat --release next --junit build/toykat.xml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := control.NeedRoot(); err != nil {
				return err
			}
			r, err := a.newCI(args, release, only)
			if err != nil {
				return err
			}
			return r.run(c.Context(), junit, keep, timeout)
		},
	}
	f := c.Flags()
	f.StringVar(&release, "release", "", `the site as this release makes it; "next": the highest (default: the site as declared)`)
	f.StringVar(&junit, "junit", "", "write the report to this `file` as JUnit's XML")
	f.StringArrayVar(&only, "only", nil, "only the nodes that this `selector` means, and their tests; may be repeated")
	f.BoolVar(&keep, "keep", false, "keep the twin, so that you can see what went wrong")
	f.DurationVar(&timeout, "timeout", timeout, "time limit of the whole run, without destroying the twin")
	return c
}

// newCI finds out what is to be tested; whatever is wrong with the command or the site file is said before anything is done.
func (a *app) newCI(args []string, release string, only []string) (*ciRun, error) {
	if a.Twin != "" {
		return nil, problem.New(problem.Usage, "orrery ci makes a twin of its own").Try("leave out --twin")
	}
	if len(args) == 0 {
		here, err := a.Directory()
		if err != nil {
			return nil, err
		}
		args = []string{here}
	}
	s, dir, err := a.Original(args[0])
	if err != nil {
		return nil, err
	}
	if len(s.Tests) == 0 {
		return nil, problem.New(problem.Mistake, "site %s declares no test", s.Name).At(filepath.Join(dir, "site.toml")).Try("[test.NAME] node = …, command = […]")
	}
	o := twin.Options{Name: ciName(time.Now(), os.Getpid()), Owner: control.Who()}
	if release != "" {
		if o.Release, err = register.ReleaseNumber(s, release); err != nil {
			return nil, err
		}
	}
	if o.Only, err = chosenNames(s, only); err != nil {
		return nil, err
	}
	made, err := twin.Of(s, o)
	if err != nil {
		return nil, err
	}
	if len(made.Tests) == 0 {
		return nil, problem.New(problem.Usage, "none of the %s is on a node of --only", phrase.Count(len(s.Tests), "test")).Try("orrery query all lists the nodes")
	}
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	b := a.another()
	b.SiteDir = dir
	r := &ciRun{app: b, original: s, site: made, keys: secret.NewKeyring(made, a.Dirs)}
	r.record = register.TwinRecord{Site: s.Name, Dir: dir, Options: o, Volumes: site.Empty, Created: time.Now().UTC().Truncate(time.Second)}
	r.report = ci.Report{Site: s.Name, Host: name, Began: time.Now(), Properties: properties(made, o.Release)}
	return r, nil
}

const ciPrefix = "ci-"

// ciName gives a twin a name that no other run has at this time.
func ciName(now time.Time, pid int) string {
	return ciPrefix + spec.DigestBytes(fmt.Append(nil, now.UnixNano(), pid))[:10]
}

// properties say, in the report, what was tested.
func properties(s *site.Site, release int) [][2]string {
	all := [][2]string{{"site", s.Name}, {"release", site.ReleaseName(release)}, {"orrery", Version}}
	maker, seen := spec.NewMaker(s), map[string]bool{}
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
