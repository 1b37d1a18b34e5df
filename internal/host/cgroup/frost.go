package cgroup

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"orrery/internal/host/process"
)

// A Frost lets a group stand still. A file tells that it was us, from before that until after it
// goes on, so that whoever comes after a kill lets go on what we have frozen, and leaves alone what
// others have. In it are the threads that are outside meanwhile.
type Frost struct {
	Group     Group
	Mark      string        // path of the file
	Processes process.Table // "": that of this host
}

// Freeze lets all processes of the group stand still, or none.
func (f Frost) Freeze(ctx context.Context) error {
	if f.Group.Frozen() {
		return f.Group.AwaitFrost(ctx, true)
	}
	outside := f.bystanders()
	var mark []byte
	if len(outside) > 0 {
		mark, _ = json.Marshal(outside) // numbers and words
	}
	if err := os.WriteFile(f.Mark, mark, 0o600); err != nil {
		return err
	}
	err := f.expel(outside)
	if err == nil {
		err = f.Group.SetFrozen(true)
	}
	if err == nil {
		err = f.Group.AwaitFrost(ctx, true)
	}
	if err != nil {
		return errors.Join(err, f.Thaw())
	}
	return nil
}

// Thaw lets a frozen group go on, whoever froze it. It does not wait until it does.
func (f Frost) Thaw() error {
	if f.Group.Frozen() {
		if err := f.Group.SetFrozen(false); err != nil {
			return err
		}
	}
	if err := f.readmit(); err != nil {
		return err
	}
	if err := os.Remove(f.Mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
