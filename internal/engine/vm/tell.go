package vm

import (
	"encoding/json"
	"path/filepath"

	"orrery/internal/engine"
	"orrery/internal/host"
)

// GuestFilePath returns the path on the host of a file that a guest reads in /etc/orrery when it boots.
func GuestFilePath(dirs host.Dirs, ref engine.Ref, file string) string {
	return filepath.Join(dirs.Etc(ref.Site, ref.ID), filepath.Base(file))
}

// WriteGuestFile writes such a file as JSON. It is readable by all, so that the program that shares the
// guest's root can read it.
func WriteGuestFile(dirs host.Dirs, ref engine.Ref, file string, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: GuestFilePath(dirs, ref, file), Content: text, Mode: 0o644})
}
