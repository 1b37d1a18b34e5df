//go:build !amd64

package qemu

import "errors"

// TryKVM returns an error, because the trial's code exists only for amd64.
func TryKVM() error { return errors.New("not tried on this kind of processor") }
