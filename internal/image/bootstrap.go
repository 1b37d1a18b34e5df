package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/image/rootfs"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// bootstrap builds the system of a base image in the tree of the staging directory. Scripts of the
// packages may do anything while they are set up, so this happens in a scratch container. There is
// no system yet, so the container uses programs of this host.
func (g *staging) bootstrap(ctx context.Context, l *spec.Layer, m site.Mirror, log io.Writer) error {
	packages, dir := distro.ForImage(l.Image).Packages, filepath.Join(g.dir, "tree")
	if _, err := os.Stat(filepath.Join(programsDir, packages.Maker)); err != nil {
		return problem.New(problem.Unable, "%s is not installed on this host", packages.Maker).Try("%s", packages.GetMaker)
	}
	m, err := access.CompleteMirror(m)
	if err != nil {
		return err
	}
	from, err := distro.Sources("/", l.Image, m)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	c, maker, err := g.startBootstrapper(ctx, l, m)
	if err != nil {
		return err
	}
	err = g.way.Explain(c.Run(ctx, host.Command{Args: maker, Stdout: log, Stderr: log}))
	c.stop()
	var run *host.RunError
	if errors.As(err, &run) {
		shorten(run, packages.Maker+" "+l.Image.Suite)
	}
	if err != nil {
		return problem.New(problem.Failed, "image %s: %s could not build %s", l.Image.Name, packages.Maker, l.Image.Suite).
			Because(err).
			Try("%s", packages.Unreached)
	}
	if err := canonical(ctx, dir, uint32(containerIDs.Size)); err != nil {
		return err
	}
	return installKeys(from, dir, packages)
}

// startBootstrapper starts a scratch container with programs of this host. It returns the container and
// the command that builds the base image in it.
func (g *staging) startBootstrapper(ctx context.Context, l *spec.Layer, m site.Mirror) (c *buildContainer,
	maker []string,
	err error) {
	p, err := g.provide(m)
	if err != nil {
		return nil, nil, err
	}
	b := &distro.Bootstrap{Suite: l.Image.Suite, Packages: spec.Packages(l.Image),
		BuildDir: access.BuildDir, Tree: "/tree"}
	from, err := distro.Sources("/", l.Image, p.mirror)
	if err != nil {
		return nil, nil, err
	}
	g.way = p.reach.Redirect(p.reach.HostPorts(from, p.mirror))
	if b.Access, err = p.reach.WriteConfig(p.dir, b.BuildDir); err != nil {
		return nil, nil, err
	}
	packages := distro.ForImage(l.Image).Packages
	if b.Sources, err = writeSources(from, packages.Trusted, p.dir); err != nil {
		return nil, nil, err
	}
	files, maker := packages.Make(b)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			return nil, nil, err
		}
	}
	binds := append(p.binds(), mountBind{source: filepath.Join(g.dir, "tree"), target: b.Tree[1:], make: true})
	root := filepath.Join(g.dir, "tools")
	programs, err := prepareRoot(root, map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\n", "hosts": access.HostsFile(),
		"resolv.conf": access.EmptyResolvConf, "hostname": "build\n",
	})
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range programs {
		binds = append(binds, mountBind{source: "/" + dir, target: dir, readOnly: true, make: true})
	}
	env := append([]string{"PATH=" + host.Path, "HOME=/root", "LANG=C.UTF-8"}, p.reach.Proxies()...)
	c, err = startContainer(ctx, g, &rootfs.Overlay{Upper: root}, env, binds)
	return c, maker, err
}

// shorten reduces the error of a failed command to what explains the failure: the name of the
// command without its options, and its last lines of output.
func shorten(run *host.RunError, command ...string) {
	lines := strings.Split(strings.TrimSpace(run.Output), "\n")
	run.Command, run.Output = command, strings.Join(lines[max(0, len(lines)-15):], "\n")
}

func keyName(i int) string { return fmt.Sprintf("orrery-%d.asc", i) }

// installKeys writes the tree's package sources, and their keys to where the nodes find them.
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
		if err := writeFiles(in, distro.File{Path: from[i].Key, Text: string(text)}); err != nil {
			return err
		}
	}
	// Replace the sources that were written while the tree was built, which name keys of this
	// machine.
	if err := emptyDirs(in, packages.More); err != nil {
		return err
	}
	return writeFiles(in, distro.File{Path: packages.Sources, Text: distro.FormatSources(from)})
}
