package cgroup

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"orrery/internal/host/process"
)

// A Freezer freezes a group. A mark file shows that Orrery froze it, and exists from before the
// freeze until after the thaw. So a run after one that was killed thaws what Orrery has frozen, and
// does not thaw what others have. The mark lists the threads that are outside the group while it is
// frozen.
type Freezer struct {
	Group     Group
	Mark      string        // path of the mark file
	Processes process.Table // or "" for that of this host
}

// Freeze freezes all processes of the group, or none.
func (f Freezer) Freeze(ctx context.Context) error {
	if f.Group.Frozen() {
		return f.Group.WaitFrozen(ctx, true)
	}
	outside := f.kernelThreads()
	var mark []byte
	if len(outside) > 0 {
		mark, _ = json.Marshal(outside) // numbers and strings can always be encoded
	}
	if err := os.WriteFile(f.Mark, mark, 0o600); err != nil {
		return err
	}
	err := f.moveOut(outside)
	if err == nil {
		err = f.Group.SetFrozen(true)
	}
	if err == nil {
		err = f.Group.WaitFrozen(ctx, true)
	}
	if err != nil {
		return errors.Join(err, f.Thaw())
	}
	return nil
}

// Thaw thaws a frozen group, even if another program froze it. It does not wait until it is thawed.
func (f Freezer) Thaw() error {
	if f.Group.Frozen() {
		if err := f.Group.SetFrozen(false); err != nil {
			return err
		}
	}
	if err := f.moveBack(); err != nil {
		return err
	}
	if err := os.Remove(f.Mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
