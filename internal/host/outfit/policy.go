package outfit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
)

// policy is asked by Debian's packages whether a service of theirs is started as they are installed
// (invoke-rc.d(8)).
const policy = "/usr/sbin/policy-rc.d"

// still says no. The remark tells whose it is, for whoever finds it after a kill.
const still = "#!/bin/sh\n# orrery has put this here while it installs packages\nexit 101\n"

// quiet lets packages start no services of their own, until it is ended: LXC's has a bridge that
// nobody needs here. A policy that the machine has is left as it is.
func quiet(path string) (end func(), err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, []byte(still)) { // of a run that was killed
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(still)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return func() { _ = os.Remove(path) }, nil
}
