//go:build !amd64

package qemu

import "errors"

// ProbeKVM returns an error, because the trial's code exists only for amd64.
func ProbeKVM() error { return errors.New("not tested on this processor architecture") }
