package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
	"orrery/internal/site/check"
	"orrery/internal/site/spec"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// An Extractor extracts single files or one node from a backup, and changes nothing of a site. It reads
// and verifies only what it extracts, so it can extract intact files from a backup that is damaged
// elsewhere.
type Extractor struct {
	From     Contents
	Manifest *vault.Manifest
	Saw      func(bytes int64)

	Lacked map[string]int // attributes that the local file system does not support, and how often
	Lost   Missing        // what is damaged in the backup, and was left out
}

// File extracts a file of a node, or a directory with its content, into a directory under its own
// name. It returns the path.
func (p *Extractor) File(ctx context.Context, node, name, dir string) (string, error) {
	n, err := p.node(node)
	if err != nil {
		return "", err
	}
	name = path.Clean("/" + name)
	t, inner, err := p.where(n, name)
	if err != nil {
		return "", err
	}
	of := part{t, inner, path.Base(name), node + ":" + name}
	if of.base == "/" {
		of.base = node
	}
	return filepath.Join(dir, of.base), p.extractTo(ctx, of, dir)
}

// Node extracts everything of a node into a new directory: what it wrote outside volumes into
// private, and its volumes into volumes/NAME. It returns the names of volumes that are not in the
// backup.
func (p *Extractor) Node(ctx context.Context, node, dir string) (without []string, err error) {
	n, err := p.node(node)
	if err != nil {
		return nil, err
	}
	at, err := newStagingDir(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	defer at.close()
	if err := at.root.Mkdir(path.Join(at.name, "new"), 0o700); err != nil {
		return nil, extractProblem(dir, err)
	}
	if t, ok := p.Manifest.Tree(privateName(n)); ok {
		if err := p.extractTo(ctx, part{t, ".", "private", node}, filepath.Join(at.path(), "new")); err != nil {
			return nil, err
		}
	}
	for i := range n.Mounts {
		m := &n.Mounts[i]
		t, ok := p.Manifest.Tree(volumeName(n, m))
		if !ok || !check.ValidFileName(m.Volume) {
			without = append(without, sanitize.Line(m.Volume))
			continue
		}
		if err := p.extractTo(ctx, part{t, ".", m.Volume, node}, filepath.Join(at.path(), "new/volumes")); err != nil {
			return nil, err
		}
	}
	return without, at.settle("new", filepath.Base(dir))
}

// node returns the record of a node. If there are several releases of it, it returns the live one.
func (p *Extractor) node(name string) (*nodedir.Record, error) {
	var found *nodedir.Record
	for i := range p.Manifest.Nodes {
		if n := &p.Manifest.Nodes[i]; n.Name == name && (found == nil || found.Staged) {
			found = n
		}
	}
	if found == nil {
		var names []string
		for i := range p.Manifest.Nodes {
			names = append(names, p.Manifest.Nodes[i].Name)
		}
		slices.Sort(names)
		return nil, problem.New(problem.Usage, "node %s is not in this backup", name).At(p.From.Where()).
			Try("it contains %s", strings.Join(slices.Compact(names), ", "))
	}
	return found, nil
}

func privateName(n *nodedir.Record) string { return "private/" + strconv.Itoa(n.ID) }

// volumeName returns the name of the tree of a volume.
func volumeName(n *nodedir.Record, m *spec.Mount) string {
	if m.Shared {
		return "volume/" + m.Volume
	}
	return "volume/" + m.Volume + "/" + n.Name
}

// where returns the tree that contains a path of a node, and the path in that tree.
func (p *Extractor) where(n *nodedir.Record, name string) (t *vault.Tree, inner string, err error) {
	of, below := privateName(n), strings.TrimPrefix(name, "/")
	longest := ""
	for i := range n.Mounts {
		m := &n.Mounts[i]
		at := path.Clean("/" + m.Path)
		rest, ok := strings.CutPrefix(name+"/", strings.TrimSuffix(at, "/")+"/")
		if !ok || len(at) < len(longest) {
			continue
		}
		longest, of, below = at, volumeName(n, m), strings.TrimSuffix(rest, "/")
		if m.From().Left != "" {
			return nil, "", problem.New(problem.Unable, "%s:%s is in volume %s, which is on a server and not in backups", n.Name,
				name, m.Volume).At(sanitize.Line(m.Address()))
		}
	}
	t, ok := p.Manifest.Tree(of)
	if !ok {
		return nil, "", problem.New(problem.Failed, "%s:%s is in %s, which is not in this backup", n.Name, name, of).
			At(p.From.Where()).Try("orrery backup ls %s", p.From.Where())
	}
	if below == "" {
		below = "."
	}
	return t, below, nil
}

// A part is a path in a tree with everything below it.
type part struct {
	of    *vault.Tree
	inner string // the path
	base  string // its name in the output directory
	title string // for messages
}

// named returns the output path for a path of the tree, or false if the path is not in the part.
func (p *part) named(name treesync.Name) (made treesync.Name, in bool) {
	switch {
	case string(name) == p.inner:
		return treesync.Name(p.base), true
	case p.inner == ".":
		return treesync.Name(p.base) + "/" + name, true
	case strings.HasPrefix(string(name), p.inner+"/"):
		return treesync.Name(p.base) + name[len(p.inner):], true
	}
	return "", false
}

// extractTo extracts a part into a directory that has no file of its name.
func (p *Extractor) extractTo(ctx context.Context, of part, dir string) error {
	at, err := newStagingDir(dir)
	if err != nil {
		return err
	}
	defer at.close()
	shut, err := closed(at.root.Name())
	if err != nil {
		return extractProblem(dir, err)
	}
	if err := p.build(ctx, of, filepath.Join(at.path(), "new"), shut); err != nil {
		if ctx.Err() != nil {
			return problem.New(problem.Interrupted, "interrupted; nothing was extracted").At(dir)
		}
		return err
	}
	return at.settle("new/"+of.base, of.base)
}

// build creates a tree that contains only the part. Shut says that users of the host cannot reach
// its final place.
func (p *Extractor) build(ctx context.Context, of part, top string, shut bool) error {
	lacks := func(what string) { p.Lacked[what]++ }
	b, err := tree.NewBuilder(top, lacks)
	if err != nil {
		return extractProblem(top, err)
	}
	defer b.Abandon()
	if err := b.Add(&tree.Header{Path: ".", Mode: unix.S_IFDIR | 0o700, Uid: os.Geteuid(), Gid: os.Getegid()},
		nil); err != nil {
		return extractProblem(top, err)
	}
	from := p.From
	c := extraction{
		treeStager: treeStager{ctx: ctx, from: from, of: of.of, shut: shut, saw: p.Saw, lacks: lacks},
		part:       of, pick: p, tree: b, linked: map[treesync.Name]bool{}, outer: map[treesync.Name]*vault.Entry{},
		here: map[treesync.Name]treesync.Name{},
	}
	if err := from.Each(of.of, c.collect); err != nil {
		return err
	}
	if !c.found {
		return c.missing()
	}
	if err := from.Each(of.of, c.extract); err != nil {
		return extractProblem(top, err)
	}
	return extractProblem(top, b.Close())
}

// An extraction extracts a part from a tree.
type extraction struct {
	treeStager
	part   part
	pick   *Extractor
	tree   *tree.Builder
	found  bool
	gone   bool                            // the node had removed the path
	link   string                          // a symbolic link in the path of the part
	linked map[treesync.Name]bool          // first names of files that have other names in the part
	outer  map[treesync.Name]*vault.Entry  // those of these files whose first name is not in the part
	here   map[treesync.Name]treesync.Name // output paths of these files, once they were created
}

// collect finds out which other entries of the tree the part needs.
func (c *extraction) collect(e *vault.Entry) error {
	if e.Kind() == unix.S_IFLNK && strings.HasPrefix(c.part.inner, string(e.Name)+"/") {
		c.link = string(e.Name)
	}
	if _, in := c.part.named(e.Name); !in {
		return nil
	}
	if e.Kind() == unix.S_IFCHR { // overlayfs marks removed files in this way
		c.gone = c.gone || string(e.Name) == c.part.inner
		return nil
	}
	c.found = true
	if e.Same != "" {
		c.linked[e.Same] = true
	}
	return nil
}

func (c *extraction) missing() error {
	p := problem.New(problem.Failed, "%s is not in this backup", c.part.title).At(c.pick.From.Where())
	switch {
	case c.gone:
		return p.Because(errors.New("the node had deleted it"))
	case c.link != "":
		return p.Because(fmt.Errorf("%s is a symbolic link", sanitize.Line(c.link))).
			Try("name its target, or the link itself")
	}
	return p.Try("files of its image and roles that the node has not changed are in its layers")
}

// extract creates one path of the part.
func (c *extraction) extract(e *vault.Entry) error {
	name, in := c.part.named(e.Name)
	if !in {
		if c.linked[e.Name] {
			kept := *e
			c.outer[e.Name] = &kept
		}
		return nil
	}
	if e.Kind() == unix.S_IFCHR {
		return nil
	}
	made, first := *e, e.Name
	if e.IsDir() {
		made.Attrs = plain(e.Attrs)
	}
	if e.Same != "" {
		first = e.Same
		if other, ok := c.outer[e.Same]; ok {
			made = *other
		}
	}
	made.Name = name
	if here, ok := c.here[first]; ok {
		made = vault.Entry{Entry: treesync.Entry{Name: name, Mode: e.Mode, Same: here}}
	} else if made.Same != "" || !c.readable(&made) {
		c.pick.Lost.add(c.part.of.Title() + ": " + tree.DisplayPath(string(e.Name)))
		return nil
	}
	if c.linked[first] && made.Same == "" {
		c.here[first] = name
	}
	return c.make(c.tree, &made)
}

// plain removes attributes that only overlayfs understands.
func plain(attrs treesync.Attrs) treesync.Attrs {
	kept := maps.Clone(attrs)
	maps.DeleteFunc(kept, func(name string, _ []byte) bool { return strings.Contains(name, ".overlay.") })
	return kept
}

// readable reports whether a file is completely intact in the backup.
func (c *extraction) readable(e *vault.Entry) bool {
	for _, x := range e.Data {
		for _, d := range x.Pieces {
			if _, err := c.from.Get(d); err != nil {
				return false
			}
		}
	}
	return true
}

// A stagingDir is a staging directory that is closed to other users, beside the final place.
type stagingDir struct {
	root *tree.Root
	name string
}

func newStagingDir(dir string) (*stagingDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, extractProblem(dir, err)
	}
	root, err := vault.OpenDirectory(dir)
	if err != nil {
		return nil, extractProblem(dir, err)
	}
	y := &stagingDir{root, ".orrery-" + rand.Text()[:12]}
	if err := root.Mkdir(y.name, 0o700); err != nil {
		root.Close()
		return nil, extractProblem(dir, err)
	}
	return y, nil
}

func (y *stagingDir) path() string { return filepath.Join(y.root.Name(), y.name) }

// settle moves the result to its place, unless something exists there.
func (y *stagingDir) settle(from, to string) error {
	err := y.root.RenameNoReplace(path.Join(y.name, from), to)
	if errors.Is(err, fs.ErrExist) {
		return existsProblem(filepath.Join(y.root.Name(), to))
	}
	return extractProblem(y.root.Name(), err)
}

func (y *stagingDir) close() {
	_ = y.root.RemoveAll(y.name) // ignore the error: it is in nobody's way
	y.root.Close()
}

func existsProblem(at string) error {
	return problem.New(problem.Refused, "already exists; nothing was done").At(at).
		Try("name another directory with --dir")
}

// extractProblem returns the problem that something could not be extracted.
func extractProblem(at string, err error) error {
	var p *problem.Problem
	if err == nil || errors.As(err, &p) || errors.Is(err, context.Canceled) {
		return err
	}
	return problem.New(problem.KindOfWriteError(err), "cannot be extracted").At(at).Because(problem.PathErrorCause(err))
}
