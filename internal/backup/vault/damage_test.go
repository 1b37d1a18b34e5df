package vault

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamageInDirectory: whatever is damaged in a directory of backups, the error names the command
// that repairs it.
func TestDamageInDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	r := written(t, dir)
	id := committed(t, r, "s", noon)
	wanted(t, os.WriteFile(filepath.Join(dir, "backups", id+".json"), []byte(`{"format":1}`), 0o600))
	_, manifest := r.Manifest(id)
	wanted(t, os.Remove(filepath.Join(dir, "backups", id+".json")))
	wanted(t, os.Mkdir(filepath.Join(dir, "backups", id+".json"), 0o700))
	_, unread := r.Manifest(id)
	_, block := r.block(Digest{})
	wanted(t, os.RemoveAll(filepath.Join(dir, "blocks")))
	wanted(t, os.WriteFile(filepath.Join(dir, "blocks"), nil, 0o600))
	blocks := r.list()
	for what, err := range map[string]error{"a manifest": manifest, "an unreadable manifest": unread, "a block": block,
		"all blocks": blocks} {
		if err == nil || !strings.Contains(err.Error(), "orrery backup repair "+dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
