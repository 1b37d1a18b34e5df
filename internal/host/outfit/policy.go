package outfit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
)

// policyFile is a script by which Debian's packages decide whether to start their services when they
// are installed (invoke-rc.d(8)).
const policyFile = "/usr/sbin/policy-rc.d"

// denyPolicy is a policy that denies all starts. Its remark explains the file to a user who finds it
// after a killed run.
const denyPolicy = "#!/bin/sh\n# orrery has put this here while it installs packages\nexit 101\n"

// suppressServices prevents packages from starting their services, until end is called. LXC's service has a
// bridge that Orrery does not need. A policy that exists already is not changed.
func suppressServices(path string) (end func(), err error) {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, []byte(denyPolicy)) { // left by a run that was killed
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
	_, err = f.WriteString(denyPolicy)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return func() { _ = os.Remove(path) }, nil
}
