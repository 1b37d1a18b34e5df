package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/apply/local/backends"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site/spec"
)

// A SiteState is one site's part of this machine. It knows only the site's key.
type SiteState struct {
	Name     string // the name of the machine in the site
	Key      string // the key of the site
	Dirs     host.Dirs
	Engines  map[string]engine.Engine
	Backends backends.Set
	Secrets  apply.Secrets
	Waiter   Scheduler
	// Guard, if set, makes sure that frozen nodes resume if this process is killed before letGo is
	// called.
	Guard func(nodes ...*spec.Node) (letGo func(), err error)
}

// engine returns the engine of a node.
func (p *SiteState) engine(n *spec.Node) (engine.Engine, error) {
	if e, ok := p.Engines[n.Engine]; ok {
		return e, nil
	}
	return nil, problem.New(problem.Unable, "node %s needs the engine %q, which this host does not have", n.Name, n.Engine)
}

// recorded returns the host's record of a node.
func (p *SiteState) recorded(n *spec.Node) (*nodedir.Record, error) {
	r, err := p.Backends.Records.Read(n.Site, n.ID)
	switch path := nodedir.Of(p.Dirs, n.Site, n.ID).Path(); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem.New(problem.Surprise, "node %s is gone", n.Name).At(path).Try("plan again")
	case err != nil:
		return nil, problem.New(problem.Failed, "the record of node %s cannot be read", n.Name).At(path).Because(err)
	}
	return r, nil
}

// trees returns the file trees of a node's layers, the topmost first.
func (p *SiteState) trees(n *spec.Node) (trees []string) {
	for _, digest := range n.Layers() {
		trees = append(trees, p.Backends.Layers.Tree(digest))
	}
	return trees
}

// writeNodeFile writes a file for the node to the tmpfs, owned by a user of the node. No other user can read
// it before it has its owner and mode.
func (p *SiteState) writeNodeFile(n *spec.Node, name string, content []byte, owner string, mode uint32) error {
	uid, gid, err := image.LookupAccount(p.trees(n), owner)
	if err != nil {
		return fmt.Errorf("owner of /etc/orrery/%s: %w", name, err)
	}
	first, err := p.rootOf(n)
	if err != nil {
		return err
	}
	uid, gid = uid+first, gid+first
	dir := p.Dirs.Etc(n.Site, n.ID)
	if err := writeUnsynced(dir, name+".new", content, 0o600); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.Chown(path+".new", uid, gid); err != nil {
		return err
	}
	if err := os.Chmod(path+".new", os.FileMode(mode)); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// rootOf returns the user id of the node's root on this host.
func (p *SiteState) rootOf(n *spec.Node) (int, error) {
	if m, ok := p.Engines[n.Engine].(engine.Idmapper); ok {
		return m.Idmap(engine.RefOf(n))
	}
	return 0, nil
}

// writeUnsynced writes a file atomically but without waiting for the disk. It is for a tmpfs and for files
// that can be written again. The file gets the owner of its directory.
func writeUnsynced(dir, name string, content []byte, mode os.FileMode) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(fresh, content, mode); err != nil {
		return err
	}
	if err := nodedir.InheritOwner(filepath.Dir(path), fresh); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// log opens the log of a node or layer for appending, through a writer that hides secrets.
func (p *SiteState) log(name string) (io.WriteCloser, error) {
	if err := os.MkdirAll(p.Dirs.Logs(p.Key), 0o700); err != nil {
		return nil, err
	}
	f, err := host.OpenLog(filepath.Join(p.Dirs.Logs(p.Key), name+".log"), 0o600)
	if err != nil {
		return nil, err
	}
	return &redacted{p.Secrets.NewWriter(f), f}, nil
}

type redacted struct {
	*secret.Writer
	file *host.Log
}

func (r *redacted) Close() error {
	err := r.Flush()
	return errors.Join(err, r.file.Close())
}

// redact hides the values of secrets in an error that contains a command's output.
func (p *SiteState) redact(err error) error { return &redactedError{err, p.Secrets.Redact} }

type redactedError struct {
	err  error
	hide func(string) string
}

func (e *redactedError) Error() string { return e.hide(e.err.Error()) }
func (e *redactedError) Unwrap() error { return e.err }
