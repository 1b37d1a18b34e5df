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

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// excludes keep out of trees what nobody reads on a node: it is more than a tenth of a small system. Licences stay.
var excludes = []string{
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
	"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/lintian/*",
	"path-exclude=/usr/share/locale/*", "path-include=/usr/share/locale/locale.alias",
}

// bootstrap makes a Debian or Ubuntu system in a directory that does not exist yet.
func (g *staging) bootstrap(ctx context.Context, l *spec.Layer, m site.Mirror, log io.Writer) error {
	tree, keys := filepath.Join(g.dir, "tree"), filepath.Join(g.dir, "keys")
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return problem.New(problem.Unable, "mmdebstrap is not installed on this host").Try("apt-get install mmdebstrap")
	}
	m, err := access.Settle(m)
	if err != nil {
		return err
	}
	from, err := access.Sources("/", l.Image, m)
	if err != nil {
		return err
	}
	here, err := placeKeys(from, keys)
	if err != nil {
		return err
	}
	list := filepath.Join(g.dir, "sources.list")
	if err := os.WriteFile(list, []byte(access.ListOf(access.Copied(here))), 0o644); err != nil {
		return err
	}
	reach := access.OfHost(m)
	way := reach.Divert(reach.Places(from, m))
	args := []string{
		// In namespaces of its own: whatever it mounts and starts goes with it, even if it is killed.
		"unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "--",
		"mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase",
		"--include=" + strings.Join(spec.Packages(l.Image), ","),
		`--aptopt=Acquire::Languages "none"`, `--aptopt=APT::Sandbox::User "root"`, // fetched by root: no mode of a directory above is in the way
	}
	for _, o := range reach.Apt {
		args = append(args, "--aptopt="+o)
	}
	if len(reach.Roots) > 0 {
		roots := filepath.Join(g.dir, "ca.pem")
		if err := os.WriteFile(roots, reach.Roots, 0o644); err != nil {
			return err
		}
		args = append(args, "--aptopt="+access.Option("Acquire::https::CAInfo", roots))
	}
	if len(reach.Netrc) > 0 {
		netrc := filepath.Join(g.dir, "auth.conf")
		if err := os.WriteFile(netrc, reach.Netrc, 0o600); err != nil {
			return err
		}
		args = append(args, "--aptopt="+access.Option("Dir::Etc::netrc", netrc))
	}
	for _, e := range excludes {
		args = append(args, "--dpkgopt="+e)
	}
	shared := g.store.archives()
	if err := os.MkdirAll(filepath.Join(shared, "partial"), 0o755); err != nil {
		return err
	}
	// Packages come from, and go to, the archives that all builds share: links, hence free. They were fetched and checked by apt,
	// which checks their hashes again.
	args = append(args,
		"--skip=download/empty", "--skip=essential/unlink", "--skip=cleanup/apt",
		fmt.Sprintf(`--setup-hook=mkdir -p "$1/var/cache/apt/archives/partial" && find '%s' -maxdepth 1 -name '*.deb' -exec ln -t "$1/var/cache/apt/archives" {} +`, shared),
		fmt.Sprintf(`--customize-hook=find "$1/var/cache/apt/archives" -maxdepth 1 -name '*.deb' -exec cp --link --no-clobber -t '%s' {} +`, shared),
		l.Image.Suite, tree, list)
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { name, _, _ := strings.Cut(v, "="); return access.ProxyVariables[name] })
	err = way.Apart(args, func(args []string) error {
		return runBound(ctx, "mmdebstrap "+l.Image.Suite, args, append(env, reach.Environ()...), log)
	})
	if err != nil {
		return problem.New(problem.Failed, "image %s: mmdebstrap could not make %s", l.Image.Name, l.Image.Suite).Because(err).
			Try("see whether `apt-get update` works on this host; [mirror] in site.toml names other archives")
	}
	return installKeys(from, tree)
}

// runBound runs a command; the error has a short name for it and the end of its output.
func runBound(ctx context.Context, name string, args, env []string, log io.Writer) error {
	command := host.Command{Args: args, Stdout: log, Stderr: log}
	err := host.Exec(ctx, "this host", args, command, func(c *exec.Cmd) { c.Env = env })
	var run *host.RunError
	if errors.As(err, &run) {
		shorten(run, name)
	}
	return err
}

// shorten leaves of a failed command what tells why: its name, without options that only say how, and its last lines.
func shorten(run *host.RunError, command ...string) {
	lines := strings.Split(strings.TrimSpace(run.Output), "\n")
	run.Command, run.Output = command, strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// placeKeys gives sources whose keys are files of this machine; a key that is written into the source itself becomes one.
func placeKeys(from []access.Source, dir string) ([]access.Source, error) {
	var placed []access.Source
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

// installKeys writes the tree's sources.list, with the keys where the nodes find them.
func installKeys(from []access.Source, tree string) error {
	for i, s := range from {
		var text []byte
		var err error
		switch {
		case strings.Contains(s.Key, "BEGIN PGP"):
			from[i].Key = "/etc/apt/keyrings/" + keyName(i)
			text = []byte(s.Key + "\n")
		case s.Key != "":
			if _, err := os.Stat(filepath.Join(tree, s.Key)); err == nil {
				continue
			}
			text, err = os.ReadFile(s.Key)
		default:
			continue
		}
		if err != nil {
			return err
		}
		if err := put(tree, from[i].Key, string(text)); err != nil {
			return err
		}
	}
	// Instead of the files that mmdebstrap wrote, whose keys are those of this machine.
	if err := empty(tree, "etc/apt/sources.list.d"); err != nil {
		return err
	}
	return put(tree, "/etc/apt/sources.list", access.ListOf(from))
}

// put writes a file of a tree, whatever was there before. Links in the tree's directories are not followed out of it.
func put(tree, path, text string) error {
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	name := strings.TrimPrefix(path, "/")
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := root.WriteFile(name, []byte(text), 0o644); err != nil {
		return err
	}
	return root.Chmod(name, 0o644) // whatever this process's umask is
}
