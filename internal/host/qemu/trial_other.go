//go:build !amd64

package qemu

import "errors"

// TryKVM has instructions to run for one kind of processor only.
func TryKVM() error { return errors.New("not tried on this kind of processor") }
