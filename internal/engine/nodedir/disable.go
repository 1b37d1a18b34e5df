package nodedir

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// unitsDir is where systemctl enable makes links.
const unitsDir = "/etc/systemd/system"

// mostUnits bounds what is looked through in unitsDir: a node writes there.
const mostUnits = 4096

// disable removes the links that pull a unit in (systemd.unit(5): .wants, .requires and .upholds directories).
func (in stopped) disable(unit string) error {
	if path.Ext(unit) == "" {
		unit += ".service" // as systemctl takes it
	}
	pullers, err := in.root.Names(unitsDir, mostUnits)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, dir := range pullers {
		if !pulls(dir) {
			continue
		}
		link := path.Join(unitsDir, dir, unit)
		if _, err := in.root.Readlink(link); err != nil {
			continue // it is not there, or nothing that systemd heeds
		}
		if err := in.root.Remove(link); err != nil {
			return err
		}
	}
	return nil
}

func pulls(dir string) bool {
	return strings.HasSuffix(dir, ".wants") || strings.HasSuffix(dir, ".requires") || strings.HasSuffix(dir, ".upholds")
}
