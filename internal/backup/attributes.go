package backup

import (
	"orrery/internal/backup/vault"
	"orrery/internal/tree"
)

// bookkeeping are overlayfs's notes about where a file came from: they hold numbers of this disk and mean nothing on another. Those
// that hide what is below are content.
var bookkeeping = map[string]bool{
	"trusted.overlay.origin": true, "trusted.overlay.impure": true, "trusted.overlay.nlink": true, "trusted.overlay.uuid": true,
	"trusted.overlay.upper": true,
}

// attributes reads the extended attributes of an entry, but for those.
func attributes(e *tree.Entry) (vault.Attrs, error) {
	all, err := tree.Attributes(e.Dir, e.Name)
	for attr := range all {
		if bookkeeping[attr] {
			delete(all, attr)
		}
	}
	if len(all) == 0 {
		return nil, err
	}
	return all, err
}
