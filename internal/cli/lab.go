package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

func (a *app) labVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure what virtualization costs on this host",
		Long: `Runs the same tests in several settings in turn: on the bare host, and in containers on each kind of network, with and without limits. It reports
what differs, by how much, and how far you can trust that. Each run makes a bundle: a directory with the raw samples and a report.`,
		Args: someVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.labRunVerb(), a.labListVerb(), a.labReportVerb(), a.labCompareVerb(), a.labCheckVerb(), a.labDoctorVerb())
	return c
}

// bundles is where runs leave their bundles unless they are told otherwise.
func (a *app) bundles() string { return filepath.Join(a.Dirs.State, "lab") }

// experiment reads the experiment that is meant: the file that is named, or the one that comes with Orrery.
func (a *app) experiment(args []string) (*experiment.Experiment, error) {
	if len(args) == 0 {
		return experiment.Default(), nil
	}
	return experiment.Read(args[0])
}

// bundleDir gives the directory of a bundle, which may be named by its path or, if it is where bundles are, by its id.
func (a *app) bundleDir(name string) (string, error) {
	if _, err := os.Stat(filepath.Join(name, bundle.HeadFile)); err == nil {
		return name, nil
	}
	if !strings.Contains(name, "/") {
		if dir := filepath.Join(a.bundles(), name); isDir(dir) {
			return dir, nil
		}
	}
	p := problem.New(problem.Usage, "%s is no bundle", name)
	heads, _ := bundle.List(a.bundles())
	ids := make([]string, len(heads))
	for i, h := range heads {
		ids[i] = h.ID
	}
	if near := problem.Nearest(name, ids); near != "" {
		return "", p.Try("did you mean %s?", near)
	}
	return "", p.Try("orrery lab ls lists those of this host")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
