// Package draft writes the first version of a site directory. That is either a small site to start
// from, or the site described by a host database.
package draft

import (
	_ "embed"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/sitefile"
)

//go:embed site.toml
var exampleSite string

//go:embed role.toml
var exampleRole string

const emptyRole = "# What this role adds to nodes: packages, files, services, health. See docs/roles.md.\ndescription = \"\"\n"

// WriteExample writes a small site with comments, which has two nodes and a role. It returns the paths of
// its files. Without a name, the site is named after the directory.
// Its subnet is one that is free on this host. If the caller has an SSH key, a file has the public half
// of it, and the nodes let the caller in.
func WriteExample(dir, name string) (paths []string, err error) {
	if name, err = chooseName(dir, name); err != nil {
		return nil, err
	}
	subnet := freeSubnet(name, takenSubnets())
	access := noAccess
	files := []host.File{{Path: filepath.Join(dir, "roles/hello/role.toml"), Content: []byte(exampleRole), Mode: 0o644}}
	if key := callerKey(); key != "" {
		access = withAccess
		files = append(files, host.File{Path: filepath.Join(dir, keysName), Content: []byte(key + "\n"), Mode: 0o644})
	}
	text := strings.NewReplacer("SITE", name, "IDENTITY", apply.NewID(), "SUBNET", subnet.String(),
		"GATEWAY", subnet.Addr().Next().String(), "ACCESS", access).Replace(exampleSite)
	site := host.File{Path: filepath.Join(dir, sitefile.Name), Content: []byte(text), Mode: 0o644}
	return write(append([]host.File{site}, files...))
}

// WriteImported writes the site of a host database, with empty roles. It returns the paths of its files.
// Without a name, the site is named after the database file or, if the database is a stream, after
// the directory.
func WriteImported(dir, database string, in io.Reader, name string) (made *sitefile.Imported, paths []string,
	err error) {
	ofDir, err := nameFor(dir)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case name != "":
		err = validateName(name)
	case database == stdinName:
		name = ofDir
	}
	if err != nil {
		return nil, nil, err
	}
	if made, err = Import(database, in, name); err != nil {
		return nil, nil, err
	}
	files := []host.File{{Path: filepath.Join(dir, sitefile.Name), Content: made.Content, Mode: 0o644}}
	for _, role := range made.Roles {
		path := filepath.Join(dir, "roles", role, "role.toml")
		if _, err := os.Stat(path); err == nil {
			continue // the user has written it already
		}
		files = append(files, host.File{Path: path, Content: []byte(emptyRole), Mode: 0o644})
	}
	paths, err = write(files)
	return made, paths, err
}

// stdinName is the name of a database that is read from the input stream.
const stdinName = "-"

// Import reads a host database, or the stream in if database is "-". Without a name, the site is
// named after the file.
func Import(database string, in io.Reader, name string) (*sitefile.Imported, error) {
	file := "standard input"
	if database != stdinName {
		file = filepath.Base(database)
		f, err := os.Open(database)
		if err != nil {
			return nil, problem.New(problem.Usage, "the host database cannot be read").At(database).
				Because(problem.PathErrorCause(err))
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
	}
	if name == "" {
		base, _, _ := strings.Cut(file, ".")
		name = siteName(base)
	}
	return sitefile.ImportINI(in, file, name)
}

func write(files []host.File) (paths []string, err error) {
	for _, f := range files {
		if err := host.WriteFile(f); err != nil {
			return paths, problem.New(problem.Failed, "cannot be written").At(f.Path).Because(problem.PathErrorCause(err))
		}
		paths = append(paths, f.Path)
	}
	return paths, nil
}

// nameFor derives the name of a site from its directory. It returns an error if there is a site
// already.
func nameFor(dir string) (string, error) {
	if path := filepath.Join(dir, sitefile.Name); exists(path) {
		return "", problem.New(problem.Usage, "a site already exists").At(path).Try("use another directory")
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return siteName(filepath.Base(absolute)), nil
}

// validateName returns an error if name cannot be the name of a site.
func validateName(name string) error {
	if siteName(name) == name {
		return nil
	}
	return problem.New(problem.Usage, "%q is not a valid name for a site", name).Try("use --name %s", siteName(name))
}

// siteName derives the name of a site from that of a file.
func siteName(file string) string {
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(file), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = strings.Trim("site-"+name, "-")
	}
	return strings.TrimRight(name[:min(len(name), 32)], "-")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
