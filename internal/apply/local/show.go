package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// shown are the files of /etc/orrery that a node gets which does not see those of the host. There
// are no secrets among them.
var shown = []string{"hosts", "inventory.json", "ssh_known_hosts", "env"}

// show writes to a running node that boots a disk what others see of the host's.
func (n *names) show(ctx context.Context, e engine.Engine, node *spec.Node) error {
	if node.Disk.Guest != site.CloudInit {
		return nil
	}
	var files []host.File
	for _, name := range shown {
		text, err := os.ReadFile(filepath.Join(n.Dirs.Etc(node.Site, node.ID), name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		files = append(files, host.File{Path: "/etc/orrery/" + name, Content: text, Mode: 0o644})
		if name == "hosts" {
			files = append(files, host.File{Path: "/etc/hosts", Content: text, Mode: 0o644})
		}
	}
	return e.Runner(engine.RefOf(node)).Put(ctx, files...)
}

// showAll does so for all of them that run.
func (n *names) showAll(ctx context.Context) error {
	all, err := nodeHost{n.Place}.List(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if node := &all[i]; node.State == observe.Running && node.Imported() {
			if err := n.show(ctx, n.Engines[node.Engine], &node.Node); err != nil {
				return err
			}
		}
	}
	return nil
}
