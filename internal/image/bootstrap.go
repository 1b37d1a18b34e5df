package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/distro"
	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// bootstrap makes the system of a base in a directory that does not exist yet.
func (g *staging) bootstrap(ctx context.Context, l *spec.Layer, m site.Mirror, log io.Writer) error {
	packages := distro.Of(l.Image).Packages
	if _, err := exec.LookPath(packages.Maker); err != nil {
		return problem.New(problem.Unable, "%s is not installed on this host", packages.Maker).Try("%s", packages.GetMaker)
	}
	m, err := access.Settle(m)
	if err != nil {
		return err
	}
	from, err := distro.Sources("/", l.Image, m)
	if err != nil {
		return err
	}
	here, err := placeKeys(from, filepath.Join(g.dir, "keys"))
	if err != nil {
		return err
	}
	b := &distro.Bootstrap{
		Suite: l.Image.Suite, Packages: spec.Packages(l.Image), Archives: g.store.archives(),
		List: filepath.Join(g.dir, "sources.list"), Tree: filepath.Join(g.dir, "tree"),
	}
	if err := os.WriteFile(b.List, []byte(distro.ListOf(access.Copied(here))), 0o644); err != nil {
		return err
	}
	reach := access.OfHost(m)
	way := reach.Divert(reach.Places(from, m))
	if b.Options, err = reach.Lay(g.dir, g.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.Archives, "partial"), 0o755); err != nil {
		return err
	}
	// In namespaces of its own: whatever it mounts and starts goes with it, even if it is killed.
	args := append([]string{"unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--"}, packages.Make(b)...)
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { name, _, _ := strings.Cut(v, "="); return access.ProxyVariables[name] })
	err = way.Apart(args, func(args []string) error {
		command := host.Command{Args: args, Stdout: log, Stderr: log}
		return host.Exec(ctx, "this host", args, command, func(c *exec.Cmd) { c.Env = append(env, reach.Environ()...) })
	})
	var run *host.RunError
	if errors.As(err, &run) {
		shorten(run, packages.Maker+" "+b.Suite)
	}
	if err != nil {
		return problem.New(problem.Failed, "image %s: %s could not make %s", l.Image.Name, packages.Maker, b.Suite).Because(err).Try("%s", packages.Unreached)
	}
	return installKeys(from, b.Tree, packages)
}

// shorten leaves of a failed command what tells why: its name, without options that only say how, and its last lines.
func shorten(run *host.RunError, command ...string) {
	lines := strings.Split(strings.TrimSpace(run.Output), "\n")
	run.Command, run.Output = command, strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// placeKeys gives sources whose keys are files of this machine; a key that is written into the source itself becomes one.
func placeKeys(from []distro.Source, dir string) ([]distro.Source, error) {
	var placed []distro.Source
	for i, s := range from {
		if strings.Contains(s.Key, "BEGIN PGP") {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
			file := filepath.Join(dir, keyName(i))
			if err := os.WriteFile(file, []byte(s.Key+"\n"), 0o644); err != nil {
				return nil, err
			}
			s.Key = file
		}
		placed = append(placed, s)
	}
	return placed, nil
}

func keyName(i int) string { return fmt.Sprintf("orrery-%d.asc", i) }

// installKeys writes where the tree's packages come from, with the keys where the nodes find them.
func installKeys(from []distro.Source, dir string, packages *distro.Packages) error {
	in, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	for i, s := range from {
		var text []byte
		var err error
		switch {
		case strings.Contains(s.Key, "BEGIN PGP"):
			from[i].Key = packages.Keys + keyName(i)
			text = []byte(s.Key + "\n")
		case s.Key != "":
			if _, err := in.Lstat(s.Key); err == nil {
				continue
			}
			text, err = os.ReadFile(s.Key)
		default:
			continue
		}
		if err != nil {
			return err
		}
		if err := lay(in, distro.File{Path: from[i].Key, Text: string(text)}); err != nil {
			return err
		}
	}
	// Instead of the files that were written as the tree was made, whose keys are those of this machine.
	if err := empty(dir, packages.More); err != nil {
		return err
	}
	return lay(in, distro.File{Path: packages.Sources, Text: distro.ListOf(from)})
}
