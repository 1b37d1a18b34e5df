package cgroup

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// A Frost lets a group stand still. A file tells that it was us, from before that until after it goes on, so that whoever comes after a kill lets go on what we have frozen, and
// leaves alone what others have.
type Frost struct {
	Group Group
	Mark  string // path of the file
}

// Freeze lets all processes of the group stand still, or none.
func (f Frost) Freeze(ctx context.Context) error {
	if f.Group.Frozen() {
		return f.Group.AwaitFrost(ctx, true)
	}
	if err := os.WriteFile(f.Mark, nil, 0o600); err != nil {
		return err
	}
	err := f.Group.SetFrozen(true)
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
	if err := os.Remove(f.Mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
