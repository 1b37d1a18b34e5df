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
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

//go:embed init-site.toml
var initSite string

//go:embed init-role.toml
var initRole string

func (a *app) initVerb() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use:   "init [DIRECTORY]",
		Short: "Write a small site with comments to start from",
		Long: `Writes a small site with comments: two nodes and a role, which come up healthy as they are. With --from, the site is that of a host database in INI
format, as "orrery import" reads it, with an empty role for each role that it names.`,
		Example: "  orrery init mysite\n  orrery init --from kat7.ini kat7",
		Args:    cobra.MaximumNArgs(1),
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
			if from != "" {
				return a.initFrom(from, dir, siteName(filepath.Base(absolute)))
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
	c.Flags().StringVar(&from, "from", "", "make the site of this host database in INI format, a `file`")
	return c
}

// initFrom writes the site of a host database, with roles that do nothing yet.
func (a *app) initFrom(database, dir, name string) error {
	made, err := a.readINI(database, name)
	if err != nil {
		return err
	}
	files := []host.File{{Path: filepath.Join(dir, "site.toml"), Content: made.Content, Mode: 0o644}}
	for _, role := range made.Roles {
		path := filepath.Join(dir, "roles", role, "role.toml")
		if _, err := os.Stat(path); err == nil {
			continue // somebody has written it already
		}
		text := "# What nodes of this role are for: packages, files, services, health. See docs/roles.md.\ndescription = \"\"\n"
		files = append(files, host.File{Path: path, Content: []byte(text), Mode: 0o644})
	}
	for _, f := range files {
		if err := host.WriteFile(f); err != nil {
			return problem.New(problem.Failed, "cannot be written").At(f.Path).Because(problem.Reason(err))
		}
	}
	fmt.Fprintf(a.out, "wrote %s and %s\n\n  orrery -C %s check\n  orrery -C %s graph > site.svg\n", files[0].Path, phrase.Count(len(files)-1, "empty role"), dir, dir)
	return a.tellImport(made, database)
}

// siteName makes a name for a site out of that of its directory.
func siteName(dir string) string {
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(dir), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = strings.Trim("site-"+name, "-")
	}
	return name[:min(len(name), 32)]
}
