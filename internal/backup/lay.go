package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// A treeStager stages a tree in a directory that no other user can enter during that time. All names are
// resolved below that directory, whatever the list says.
type treeStager struct {
	ctx   context.Context
	from  Contents
	of    *vault.Tree
	shut  bool // users of the host cannot reach the directory
	saw   func(int64)
	lacks func(what string) // called for every attribute that is not restored
}

// stageTree stages a tree in a new directory. The parent of the directory must exist.
func stageTree(ctx context.Context, from Contents, t *vault.Tree, dir string, saw func(int64),
	lacks func(string)) error {
	shut, err := closed(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return (&treeStager{ctx: ctx, from: from, of: t, shut: shut, saw: saw, lacks: lacks}).stage(dir)
}

func (l *treeStager) stage(dir string) error {
	b, err := tree.NewBuilder(dir, l.lacks)
	if err != nil {
		return err
	}
	empty := true
	err = l.from.Each(l.of, func(e *vault.Entry) error { empty = false; return l.make(b, e) })
	if err != nil {
		b.Abandon()
		return err
	}
	if empty {
		b.Abandon()
		return l.from.Damaged("the list of "+l.of.Name, errors.New("it does not begin with its root directory"))
	}
	return b.Close()
}

// closed reports whether other users of the host cannot enter a directory, because of its own mode
// or that of a parent.
func closed(dir string) (bool, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	for ; err == nil; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if err = unix.Stat(dir, &st); err == nil && st.Mode&0o011 == 0 && int(st.Uid) == os.Geteuid() {
			return true, nil
		}
		if dir == "/" {
			break
		}
	}
	return false, err
}

func (l *treeStager) make(b *tree.Builder, e *vault.Entry) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	keep, err := l.accepts(e)
	if err != nil {
		return l.from.Damaged(l.of.Name+"/"+tree.DisplayPath(string(e.Name)), err)
	}
	if !keep {
		return nil
	}
	made := e.Header(l.policy(e))
	const setID = unix.S_ISUID | unix.S_ISGID
	if !l.shut && !e.IsDir() && made.Mode&setID != 0 {
		made.Mode &^= setID
		l.lacks("set-user-ID or set-group-ID")
	}
	err = b.Add(made, func(f *os.File) error { return l.fill(f, e) })
	if errors.Is(err, unix.ENOENT) && e.Same != "" && e.Kind() == unix.S_IFCHR {
		return nil // another name of a device that was left out
	}
	if errors.Is(err, tree.ErrOrder) || errors.Is(err, tree.ErrNotRegular) || errors.Is(err, tree.ErrTooLarge) ||
		errors.Is(err, unix.EINVAL) {
		return l.from.Damaged("the list of "+l.of.Name, err)
	}
	return err
}

// accepts reports whether an entry is restored, and returns an error for an entry that its kind of
// tree cannot have. Devices are left out: a node has the devices that its engine gives it, and the
// meaning of a device number on this host is unknown.
func (l *treeStager) accepts(e *vault.Entry) (bool, error) {
	if !inPlace(l.of.Kind, e) {
		return false, fmt.Errorf("%s is not allowed at this path", tree.Kind(e.Mode))
	}
	switch e.Kind() {
	case unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK:
		return true, nil
	case unix.S_IFIFO:
		declares := slices.Contains([]string{vault.SiteTree, vault.ExtendedTree, vault.ReleaseTree}, l.of.Kind)
		if declares {
			l.lacks("named pipes")
		}
		return !declares, nil
	case unix.S_IFCHR, unix.S_IFBLK:
		whiteout := e.Kind() == unix.S_IFCHR && e.Major == 0 && e.Minor == 0
		if !whiteout && l.of.Kind == vault.LayerTree {
			return false, problem.New(problem.Refused, "layer %s of the backup contains devices; nothing was done",
				l.of.Layer).At(l.from.Where()).
				Try("omit --trust-layers, and the layer is built from its recipe")
		}
		if !whiteout {
			l.lacks("devices")
		}
		return whiteout, nil
	}
	return false, fmt.Errorf("unknown file type: %o", e.Mode)
}

// inPlace reports whether a kind of tree may have an entry in this place. The directories of
// releases and snapshots are later accessed by path, so none of them may be a link.
func inPlace(kind string, e *vault.Entry) bool {
	parts := strings.Split(string(e.Name), "/")
	switch kind {
	case vault.ReleaseTree:
		return len(parts) > 1 || e.IsDir() || e.IsFile() && e.Name == "release.json"
	case vault.SnapshotTree:
		switch {
		case len(parts) == 1:
			return e.IsDir() || e.IsFile() && e.Name == "snapshot.json"
		case len(parts) <= 3: // nodes/ID/upper, volumes/NAME/NODE
			return e.IsDir()
		}
	}
	return true
}

// policy returns which extended attributes are restored, and reports the others.
func (l *treeStager) policy(e *vault.Entry) treesync.Policy {
	policy := treesync.UnprivilegedAttrs
	if l.shut {
		policy = treesync.ContentAttrs
	}
	for name := range e.Attrs {
		if !policy.Includes(name) {
			l.lacks(strings.ToValidUTF8(name, "?"))
		}
	}
	return policy
}

// fill writes the parts of a file that are not holes.
func (l *treeStager) fill(f *os.File, e *vault.Entry) error {
	if err := f.Truncate(e.Size); err != nil {
		return err
	}
	for _, x := range e.Data {
		at, end := x.At, x.At+x.Size
		for _, d := range x.Pieces {
			if l.ctx.Err() != nil {
				return context.Cause(l.ctx)
			}
			content, err := l.from.Get(d)
			if err != nil {
				return err
			}
			if int64(len(content)) != vault.Chunk(at, end) {
				return l.from.Damaged(l.of.Name+"/"+tree.DisplayPath(string(e.Name)),
					errors.New("its pieces do not have the recorded length"))
			}
			if _, err := f.WriteAt(content, at); err != nil {
				return err
			}
			at += int64(len(content))
			l.saw(int64(len(content)))
		}
	}
	return nil
}
