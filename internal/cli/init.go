package cli

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/problem"
)

//go:embed init-site.toml
var initSite string

//go:embed init-role.toml
var initRole string

func (a *app) initVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIRECTORY]",
		Short: "Write a small site with comments to start from",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			path := filepath.Join(dir, "site.toml")
			if _, err := os.Stat(path); err == nil {
				return problem.New(problem.Usage, "there is a site already").At(path).Try("give another directory")
			}
			text := strings.ReplaceAll(initSite, "SITE", siteName(filepath.Base(absolute)))
			role := filepath.Join(dir, "roles/hello/role.toml")
			for _, f := range []host.File{
				{Path: path, Content: []byte(text), Mode: 0o644},
				{Path: role, Content: []byte(initRole), Mode: 0o644},
			} {
				if err := host.WriteFile(f); err != nil {
					return problem.New(problem.Failed, "cannot be written").At(f.Path).Because(problem.Reason(err))
				}
			}
			fmt.Fprintf(a.out, "wrote %s and %s\n\n  orrery -C %s check\n  sudo orrery -C %s up\n", path, role, dir, dir)
			return nil
		},
	}
}

// siteName makes a name for a site out of that of its directory.
func siteName(dir string) string {
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(dir), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = strings.Trim("site-"+name, "-")
	}
	return name[:min(len(name), 32)]
}
