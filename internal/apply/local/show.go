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

// copiedFiles lists the files of /etc/orrery that are copied to a node that does not see those of the
// host. None of them contains secrets.
var copiedFiles = []string{"hosts", "inventory.json", "ssh_known_hosts", "env"}

// copyEtc writes these files to a running node that boots from a disk image.
func (n *names) copyEtc(ctx context.Context, e engine.Engine, node *spec.Node) error {
	if node.Disk.Guest != site.CloudInit {
		return nil
	}
	var files []host.File
	for _, name := range copiedFiles {
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

// copyEtcToAll does so for all such nodes that run.
func (n *names) copyEtcToAll(ctx context.Context) error {
	all, err := nodeHost{n.SiteState}.List(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if node := &all[i]; node.State == observe.Running && node.Imported() {
			if err := n.copyEtc(ctx, n.Engines[node.Engine], &node.Node); err != nil {
				return err
			}
		}
	}
	return nil
}
