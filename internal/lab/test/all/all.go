// Package all is the only list of the kinds of tests.
package all

import (
	"orrery/internal/lab/test"
	"orrery/internal/lab/test/capture"
	"orrery/internal/lab/test/command"
	"orrery/internal/lab/test/cpu"
	"orrery/internal/lab/test/disk"
	"orrery/internal/lab/test/micro"
	"orrery/internal/lab/test/mpi"
	"orrery/internal/lab/test/net"
)

// New makes a test of a kind. It sets its defaults, has decode put the options of an experiment's
// file over them, and checks them. What it says is wrong begins with the key, or is At it.
type New = func(decode func(options any) error) (test.Test, error)

// Kinds returns every kind of test by the name that experiments use.
func Kinds() map[string]New {
	return map[string]New{
		"capture": capture.New,
		"command": command.New,
		"cpu":     cpu.New,
		"disk":    disk.New,
		"micro":   micro.New,
		"mpi":     mpi.New,
		"net":     net.New,
	}
}
