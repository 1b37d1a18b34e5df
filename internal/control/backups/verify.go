package backups

import (
	"context"
	"fmt"

	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/text/humanize"
)

// Verify reads a backup, or all backups in a directory, and compares them with their digests. It
// calls each for every backup that was read, with the damage or nil.
func Verify(ctx context.Context, c *control.Session, where string, each func(id string, damage error)) error {
	v, id, err := vault.Open(where)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it was only read
	ids := []string{id}
	if id == "" {
		ids, err = v.Backups()
	} else {
		ids[0], _, err = vault.Resolve(v, id)
	}
	if err != nil {
		return err
	}
	for _, id := range ids { // a damaged backup does not stop the verification of the others
		err := verify(ctx, c, v, id)
		if ctx.Err() != nil {
			return err
		}
		each(id, err)
	}
	return nil
}

// reportCorrupt reports the damage in a directory of backups.
func reportCorrupt(c *control.Session, in vault.Vault, found *vault.Checked) {
	tell := func(format string, args ...any) {
		c.Watcher.Event(control.Event{Kind: control.Trouble, Text: fmt.Sprintf(format, args...)})
	}
	const maxReported = 8
	for i := range found.Corrupt[:min(len(found.Corrupt), maxReported)] {
		tell("damaged in %s: %s (%v)", in.Where(), found.Corrupt[i].Name(), found.Corrupt[i].Why)
	}
	if more := len(found.Corrupt) - maxReported; more > 0 {
		tell("damaged in %s: %s more", in.Where(), humanize.Plural(more, "block"))
	}
	for _, id := range found.Manifests {
		tell("damaged in %s: the manifest of backup %s; that backup is lost", in.Where(), id)
	}
	if len(found.Corrupt) > 0 && !found.Replaced {
		tell("earlier backups may need the damaged blocks: orrery backup repair %s", in.Where())
	}
}

// verify reads a backup and compares it with its digests.
func verify(ctx context.Context, c *control.Session, v vault.Vault, id string) error {
	watch := c.Watcher.Bytes("verify")
	defer watch.Close()
	return v.Verify(ctx, id, watch.Add)
}
