//go:build !amd64

package doctor

import "errors"

// tryKVM has instructions to run for one kind of processor only.
func tryKVM() error { return errors.New("not tried on this kind of processor") }
